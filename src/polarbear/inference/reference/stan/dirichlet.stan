// Ratings at each time are Dirichlet(alpha, ..., alpha), independently (paper, 3.2.1).
// The coordinates are those of centred log-utilities, in which the posterior is log-concave.
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
  real<lower=0> alpha;
}
transformed data {
  matrix[n, n - 1] basis = helmert(n);
}
parameters {
  matrix[T, n - 1] eta;
}
transformed parameters {
  matrix[T, n] mu = eta * basis';
}
model {
  target += dirichlet_utilities(mu, alpha);
  target += plackett_luce(mu, wins, count, member);
}
