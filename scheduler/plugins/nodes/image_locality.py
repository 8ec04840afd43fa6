"""ImageLocality: prefer nodes that have the pod's images already. Source: kube-scheduler 1.36."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import MAX_NODE_SCORE, ScorePlugin
from nominee.scheduler.framework.types import ImageState, NodeInfo, PodInfo

_MEGABYTE = 1024 * 1024
THRESHOLD_MIN_BYTES = 23 * _MEGABYTE
CONTAINER_THRESHOLD_MAX_BYTES = 1000 * _MEGABYTE


def _spread_size(image: ImageState, nodes: int) -> int:
    """Return the image's size times the share of nodes that have it, so that pods spread."""
    return int(float(image.size) * (float(len(image.nodes)) / float(nodes)))


def _image_of(name: str, info: NodeInfo) -> ImageState | None:
    return info.images.get(name)


class ImageLocality(ScorePlugin):
    """Prefers nodes that have the pod's images."""

    name = "ImageLocality"

    def score_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        totals = np.zeros(len(rows), dtype=np.int64)
        if not snapshot.image_count or not pod.images:
            return totals
        for name in pod.images:
            column = snapshot.column(("image", name), partial(_image_of, name))
            if column.distinct > 1 or column.id_of(None) < 0:
                totals += column.numbers(
                    lambda image: 0 if image is None else _spread_size(image, len(snapshot)), rows
                )
        highest = CONTAINER_THRESHOLD_MAX_BYTES * len(pod.images)
        np.clip(totals, THRESHOLD_MIN_BYTES, highest, out=totals)
        return MAX_NODE_SCORE * (totals - THRESHOLD_MIN_BYTES) // (highest - THRESHOLD_MIN_BYTES)
