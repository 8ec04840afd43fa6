"""Scale scores to 0..100. Source: kube-scheduler 1.36, plugin helper, DefaultNormalizeScore."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nominee.scheduler.framework.interface import MAX_NODE_SCORE


def normalize_by_max(scores: NDArray[np.int64], *, reverse: bool = False) -> NDArray[np.int64]:
    """Scale the largest to 100 (reverse: 0), the rest in proportion; all zero stays, or becomes 100."""
    highest = int(scores.max()) if len(scores) else 0
    if highest == 0:
        return np.full_like(scores, MAX_NODE_SCORE) if reverse else scores
    scaled = scores * MAX_NODE_SCORE // highest
    return MAX_NODE_SCORE - scaled if reverse else scaled
