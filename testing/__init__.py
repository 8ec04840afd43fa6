"""Clusters, scheduling cycles and simulations for tests of other projects (docs/testing.md).

    from nominee.testing import Cluster, pod

    with Cluster(nodes=3) as cluster:
        cluster.apply("pods.yaml")
        cluster.wait(pod("a"), "status.phase == 'Running'")

Names are imported when they are first used: the pytest plugin (`plugin.py`) is in this package, and a run of
tests that does not use it must not pay for it. Start reading at `cluster.py`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nominee.localcluster.cluster import ClusterError
    from nominee.localcluster.own_cluster import ClusterStartError
    from nominee.machinery.api.errors import StatusError
    from nominee.simulation.simulation import Simulation
    from nominee.testing.async_cluster import AsyncCluster
    from nominee.testing.cluster import BrokenInvariantsError, Cluster
    from nominee.testing.harness import CycleResult, PluginHarness
    from nominee.testing.history import ObjectRevision
    from nominee.testing.references import Reference, node, pod, ref
    from nominee.testing.simulations import BrokenSeed, SimulationResult, simulate

_MODULES = {
    "AsyncCluster": "nominee.testing.async_cluster",
    "BrokenInvariantsError": "nominee.testing.cluster",
    "Cluster": "nominee.testing.cluster",
    "CycleResult": "nominee.testing.harness",
    "ClusterError": "nominee.localcluster.cluster",
    "ClusterStartError": "nominee.localcluster.own_cluster",
    "ObjectRevision": "nominee.testing.history",
    "PluginHarness": "nominee.testing.harness",
    "Reference": "nominee.testing.references",
    "StatusError": "nominee.machinery.api.errors",
    "Simulation": "nominee.simulation.simulation",
    "SimulationResult": "nominee.testing.simulations",
    "BrokenSeed": "nominee.testing.simulations",
    "simulate": "nominee.testing.simulations",
    "node": "nominee.testing.references",
    "pod": "nominee.testing.references",
    "ref": "nominee.testing.references",
}

__all__ = [
    "AsyncCluster",
    "BrokenInvariantsError",
    "BrokenSeed",
    "Cluster",
    "ClusterError",
    "ClusterStartError",
    "CycleResult",
    "ObjectRevision",
    "PluginHarness",
    "Reference",
    "Simulation",
    "SimulationResult",
    "StatusError",
    "node",
    "pod",
    "ref",
    "simulate",
]


if not TYPE_CHECKING:  # a type checker would take any name for one of the package

    def __getattr__(name: str) -> object:
        """Import a name of this package."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(_MODULES[name]), name)
