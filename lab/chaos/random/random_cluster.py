"""The cluster of `nominee chaos run`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio

from nominee.lab.chaos.random.load_client import GROUP
from nominee.lab.chaos.random.random_run import Outcome, RandomRun
from nominee.lab.scenario.fields.options import ClusterOptions, ComponentOptions
from nominee.lab.scenario.format.replacing import Programs, with_programs
from nominee.lab.scenario.play.play import NotStartedError, started
from nominee.localcluster.cluster import ClusterError
from nominee.machinery.runtime import logs

OPTIONS = ClusterOptions(
    nodes=3,
    kubelets=2,
    node_groups=(
        {
            "name": GROUP,
            "min": 0,
            "max": 2,
            "target": 0,
            "provisioningDelay": "200ms",
            "template": {"cpu": "4", "memory": "16Gi", "pods": 110},
        },
    ),
    feature_gates={"InPlacePodVerticalScalingSchedulerPreemption": True, "GenericWorkload": True},
    components={
        "scheduler": ComponentOptions(
            replicas=2,
            config={
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "leaderElection": {
                    "leaderElect": True,
                    "leaseDuration": "3s",
                    "renewDeadline": "2s",
                    "retryPeriod": "500ms",
                },
            },
        ),
        "kubelet": ComponentOptions(arguments=("--node-cpu=4",)),
        "autoscaler": ComponentOptions(
            arguments=(
                "--scan-interval=1s",
                "--scale-down-unneeded-time=5s",
                "--scale-down-delay-after-add=2s",
                "--scale-down-delay-after-failure=1s",
                "--initial-node-group-backoff-duration=1s",
                "--max-node-group-backoff-duration=5s",
            )
        ),
    },
    insecure=True,
)
"""Few small nodes, so that pods preempt each other and the autoscaler adds nodes.

The other scheduler takes over 3 s after the leader's death, not 15 s.
"""


def run_real(
    directory: Path, seed: int, seconds: float, rate: float, say: Callable[[str], None], programs: Programs
) -> Outcome:
    """Run on real processes, with these programs in the places of components.

    Raises:
        ClusterError: the cluster does not start, or cannot be controlled.
    """

    options = with_programs(OPTIONS, programs)

    async def main() -> Outcome:
        # It imports gRPC; the cluster is started before.
        from nominee.lab.scenario.clusters.real_cluster import RealCluster

        async with RealCluster.open(directory, options) as cluster:
            return await RandomRun(cluster, say).run(seed, seconds, rate)

    try:
        with logs.written_to(directory / "logs" / "chaos.log", "chaos"), started(options, directory):
            return anyio.run(main, backend_options={"use_uvloop": True})
    except NotStartedError as error:
        raise ClusterError(f"the cluster did not start: {error}") from None
