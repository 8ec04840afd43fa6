"""Restore a cluster after a scenario, so that another one with the same `spec.cluster` can use it."""

from __future__ import annotations

from typing import Final

from nominee.lab.scenario.acting.base import Phase, Undoing
from nominee.lab.scenario.acting.errors import StepFailedError
from nominee.lab.scenario.acting.stage import Stage
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.lab.scenario.format.model import Scenario
from nominee.localcluster.cluster import ClusterError

_SECONDS_MAX: Final = 30.0
_POLL_SECONDS: Final = 0.02


async def clean(stage: Stage, scenario: Scenario) -> None:
    """Undo the steps of a scenario, phase by phase.

    Raises:
        ClusterError: the cluster cannot be restored.
    """
    actions = [step.action for step in scenario.steps]
    undoing = Undoing(stage=stage, cluster=scenario.cluster, actions=actions)
    for phase in Phase:
        if phase is Phase.FAILPOINTS:
            await _until_ready(stage.cluster, scenario)
        for action in actions:
            if action.undone_in is not phase:
                continue
            try:
                await action.undo(undoing)
            except StepFailedError as error:
                raise ClusterError(f"{scenario.name} cannot be cleaned up: {error}") from None


async def _until_ready(cluster: ScenarioCluster, scenario: Scenario) -> None:
    """Wait until no process starts or is to be started again."""
    deadline = cluster.clock.monotonic() + _SECONDS_MAX
    while True:
        starting = [p.name for p in await cluster.processes() if p.state not in ("ready", "down", "paused")]
        if not starting:
            return
        if cluster.clock.monotonic() >= deadline:
            raise ClusterError(f"after {scenario.name} {', '.join(starting)} is not ready")
        await cluster.clock.sleep(_POLL_SECONDS)
