"""Golden cases: a small cluster of ordinary manifests, loaded into the scheduler's framework."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from nominee.explain.cluster import Cluster as World
from nominee.explain.cluster import ObjectLister as ListLister
from nominee.explain.cluster import build_cluster, read_object
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.runtime.clock import FakeClock
from nominee.scheduler.framework.runtime.profile import Profile

__all__ = [
    "GOLDEN_VERSION",
    "ListLister",
    "World",
    "build_world",
    "read_object",
]

GOLDEN_VERSION = Version(1, 36)
NOW_SECONDS = 1_800_000_000.0  # later than anything in the data


def build_world(
    manifests: Sequence[Mapping[str, Any]],
    *,
    gates: Mapping[str, bool] | None = None,
    version: Version = GOLDEN_VERSION,
    profile: Profile | None = None,
) -> World:
    return build_cluster(
        manifests,
        gates=Gates("scheduler", version, gates or {}),
        clock=FakeClock(NOW_SECONDS),
        rng=random.Random(1),
        profiles=() if profile is None else (profile,),
    )
