  // Functions that the models share; the names are those of the Python code.

  /* Orthonormal basis (n, n - 1) of the vectors that sum to zero. */
  matrix helmert(int n) {
    matrix[n, n - 1] basis = rep_matrix(0, n, n - 1);
    for (k in 1 : n - 1) {
      basis[1 : k, k] = rep_vector(inv_sqrt(k * (k + 1.0)), k);
      basis[k + 1, k] = -sqrt(k / (k + 1.0));
    }
    return basis;
  }

  /* Log-likelihood of rankings from counted sets, for log-utilities mu (T, n). */
  real plackett_luce(matrix mu, data matrix wins, data matrix count,
                     data matrix member) {
    vector[rows(mu)] top;
    for (t in 1 : rows(mu)) {
      top[t] = max(mu[t]); // so that the exponentials stay in range
    }
    matrix[rows(mu), cols(mu)] rate = exp(mu - rep_matrix(top, cols(mu)));
    return sum(wins .* mu) - sum(count .* log(rate * member'))
           - dot_product(top, count * ones_vector(cols(count)));
  }

  /* Log-density of a Dirichlet(alpha, ...) at each time, in centred log-utilities. */
  real dirichlet_utilities(matrix mu, real alpha) {
    int n = cols(mu);
    real normaliser = lgamma(n * alpha) - n * lgamma(alpha) + 0.5 * log(n);
    real log_theta = 0;
    for (t in 1 : rows(mu)) {
      log_theta -= n * log_sum_exp(mu[t]); // the utilities themselves sum to zero
    }
    return alpha * log_theta + rows(mu) * normaliser;
  }

  /* Log-density of a hyperparameter: 1 LogNormal, 2 InverseGamma, 3 Exponential. */
  real log_hyper(real x, data int family, data vector parameter) {
    if (family == 1) {
      return lognormal_lpdf(x | parameter[1], parameter[2]);
    } else if (family == 2) {
      return inv_gamma_lpdf(x | parameter[1], parameter[2]);
    }
    return exponential_lpdf(x | parameter[1]);
  }
