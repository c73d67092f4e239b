"""The bound of the row-shaped attention kernel for CPU devices, element by element against float64.

What it may be off by, with u = 2^-24, for a query that sees K rows with exact scores s_j, of which s_m is the
largest, weights w_j = exp(s_j - s_m), p_j = w_j / sum w and the exact output o:

- A score is a sum of k_dim products in 16 lanes: ceil(k_dim / 16) fused steps (two roundings each where the device
  has none), four levels that add lanes, two roundings of the factor and of the query times it. So it is off by at
  most e_j = (k_dim / 8 + 9) u sum |q k_j| / sqrt(k_dim); and the difference to the maximum, in one rounding or in
  steps as the maximum grows, by u |s_j - s_m| more. The maximum drops out of the quotient, so the weight of j is
  off by a factor of exp(X_j) at most, X_j = e_j + e_m + u |s_j - s_m|. With sum of w_j (v_j - o) = 0 that moves the
  output by sum p_j (exp(X_j) - 1) |v_j - o| / sum p_j exp(-X_j) at most.
- All the rest are relative errors of terms p_j v_j and of p_j: the exponential (4 u); a factor for each growth of
  the maximum and for the joining (5 u); product and division (2 u); and the sums. Growths and sums make up to K
  roundings for each term, but of either sign, so that they come to some sqrt(K) u (Higham and Mary, 2019), and to
  less since partial sums begin small. Together c u sum p_j |v_j|, with c = 16 for the up to 300 rows here.
- Weights below 2^-125 are lost: 2^-125 sum |v_j|.
"""

from __future__ import annotations

import numpy as np

from kvspec.geometry import Array

U = 2.0**-24
C = 16.0


def weighed(query: Array, keys: Array, values: Array) -> tuple[Array, Array]:
    """The output of one query over the rows it sees, and its bound: see the head of this module."""
    dim = len(query)
    scores = keys @ query / np.sqrt(dim)
    below = scores - scores.max()
    p = np.exp(below)
    p /= p.sum()
    output = p @ values
    error = (dim / 8 + 9) * U * (np.abs(keys) @ np.abs(query)) / np.sqrt(dim)
    spread = np.minimum(error + error[scores.argmax()] + U * np.abs(below), 1.0)
    moved = (p * np.expm1(spread)) @ np.abs(values - output) / (p @ np.exp(-spread))
    return output, moved + C * U * (p @ np.abs(values)) + 2.0**-125 * np.abs(values).sum(0)
