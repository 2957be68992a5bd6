"""The derivative of the incomplete gamma function by its first argument, which SciPy lacks.

P(a, x) is the sum over n from 0 of t_n = exp((a + n) log x - x - log gamma(a + n + 1)), all of them
positive. So dP/da is the sum of t_n (log x - psi(a + n + 1)). The terms grow up to n near x - a and
then fall faster than a geometric sequence; the sum is taken until the largest term left is below
the precision of the result, all elements side by side, in float64.

Rejected: a continued fraction for large x, differentiated term by term (Moore 1982), which is
quicker there, but loses digits near x = a, where it must hand over to the series. Limits: the work
grows with the largest x; beyond x = 1e5 or so the digits of exp(...) run out.
"""

from __future__ import annotations

from flowscope.graph.op import Array, ArrayModule
from flowscope.graph.values.host_values import on_host

_ROUNDS = 100_000


def derivative_by_a(xp: ArrayModule, special: ArrayModule, a: Array, x: Array) -> Array:
    """Returns dP(a, x)/da as float64; NaN where a is not positive or x is negative.

    Args:
        xp: Array module.
        special: Its special functions.
        a: Positive numbers.
        x: Numbers from 0 on; broadcast with a.
    """
    a, x = xp.broadcast_arrays(a.astype(xp.float64), x.astype(xp.float64))
    good = (a > 0) & (x > 0) & xp.isfinite(a) & xp.isfinite(x)
    total = _series(xp, special, xp.where(good, a, 1.0), xp.where(good, x, 1.0))
    edge = xp.where((a > 0) & ((x == 0) | xp.isinf(x)), 0.0, xp.nan)
    return xp.where(good, total, edge)


def _series(xp: ArrayModule, special: ArrayModule, a: Array, x: Array) -> Array:
    log_x = xp.log(x)
    term = xp.exp(a * log_x - x - special.gammaln(a + 1))
    slope = log_x - special.psi(a + 1)
    total = xp.zeros_like(term)
    for n in range(_ROUNDS):
        piece = term * slope
        total = total + piece
        n_next = a + n + 1
        slope = slope - 1 / n_next
        term = term * (x / n_next)
        # Past the peak, and too small to matter.
        if n % 16 == 15:
            is_done = (n_next > x) & (abs(piece) <= 1e-18 + 1e-17 * abs(total))
            if on_host(is_done.all()):
                break
    return total
