// Ratings at each time are Dirichlet(kappa / n, ...), with one kappa for all times (paper, 3.2.1).
functions {
#include shared.stan
}
data {
  int<lower=1> T; // times
  int<lower=2> n; // algorithms
  int<lower=1> S; // sets from which somebody was chosen
  matrix[T, n] wins; // how often each was chosen
  matrix[T, S] count; // how often each set was chosen from
  matrix[S, n] member; // who is in which set
  int<lower=1, upper=3> kappa_family;
  vector[2] kappa_parameter;
}
transformed data {
  matrix[n, n - 1] basis = helmert(n);
}
parameters {
  real<lower=0> kappa;
  matrix[T, n - 1] eta;
}
transformed parameters {
  matrix[T, n] mu = eta * basis';
}
model {
  target += log_hyper(kappa, kappa_family, kappa_parameter);
  target += dirichlet_utilities(mu, kappa / n);
  target += plackett_luce(mu, wins, count, member);
}
