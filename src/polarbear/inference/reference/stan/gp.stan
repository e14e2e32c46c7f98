// Log-utilities are an exact Gaussian process over time (paper, 3.2.2).
// The coefficients z are white: those of the process itself hang on its hyperparameters.
functions {
#include shared.stan

  /* Cholesky factor of a correlation: 1 Matern 3/2, 2 Matern 5/2, 3 squared exponential. */
  matrix root(data array[] real times, real length, data int kernel) {
    int T = size(times);
    matrix[T, T] correlation;
    if (kernel == 1) {
      correlation = gp_matern32_cov(times, 1.0, length);
    } else if (kernel == 2) {
      correlation = gp_matern52_cov(times, 1.0, length);
    } else {
      correlation = gp_exp_quad_cov(times, 1.0, length);
    }
    // The squared exponential is singular to rounding: a share of its own variance mends that.
    return cholesky_decompose(add_diag(correlation, 1e-10));
  }
}
data {
  int<lower=1> T; // times
  int<lower=2> n; // algorithms
  int<lower=1> S; // sets from which somebody was chosen
  matrix[T, n] wins; // how often each was chosen
  matrix[T, S] count; // how often each set was chosen from
  matrix[S, n] member; // who is in which set
  array[T] real times; // on [0, 1]
  int<lower=1, upper=3> kernel;
  int<lower=1, upper=3> scale_family;
  vector[2] scale_parameter;
  int<lower=1, upper=3> length_family;
  vector[2] length_parameter;
}
transformed data {
  matrix[n, n - 1] basis = helmert(n);
}
parameters {
  real<lower=0> scale;
  real<lower=0> length;
  matrix[T, n - 1] z;
}
transformed parameters {
  matrix[T, n] mu = root(times, length, kernel) * (scale * z) * basis';
}
model {
  target += log_hyper(scale, scale_family, scale_parameter);
  target += log_hyper(length, length_family, length_parameter);
  target += std_normal_lpdf(to_vector(z));
  target += plackett_luce(mu, wins, count, member);
}
