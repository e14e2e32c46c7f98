r"""The Plackett-Luce likelihood of rankings: value, gradient and curvature.

With log-utilities mu and theta = softmax(mu), a ranking is a sequence of choices: the first place
from all algorithms, the second from the rest, and so on (paper, eq. 6; Plackett 1975, Luce 1959).
All rankings at one time, full, partial, weighted or tied, therefore reduce to

    loglik(mu) = sum_i wins[i] mu_i - sum_S count[S] log sum_{j in S} exp mu_j

where count[S] is the total weight of the choices made from the set S.

**Ties.** By default the order of tied algorithms is not known, and ``unordered_ties`` adds the
probability that all of a tied group precede those behind it. The paper replaces k tied algorithms
by all k! orders with weight 1/k! (``ties="averaged"``). In the mean log-likelihood only the sets
matter. Let G be a tied group and R the algorithms ranked behind it.
Each m-subset U of G yields a choice from U + R with weight 1/C(k, m). That is 2^k sets instead of
k! orders, and exact. Groups larger than ``EXACT_TIES`` use the sets of sampled orders, balanced so
that no algorithm is favoured.

Two representations give the same numbers. ``SubsetLikelihood`` sums the counts of equal sets, so
its cost does not depend on the number of rankings; it is for few algorithms, which have few sets.
``RankingLikelihood`` keeps the rankings and uses suffix sums, at a cost linear in their length; it
is for many algorithms.
"""
