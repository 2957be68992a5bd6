"""Rank correlation."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Returns Spearman's rank correlation: 1 where both put things in the same order."""
    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])
