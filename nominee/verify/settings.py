"""The configuration of a cluster, from the run files of its processes, or the plan of one that is down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from machinery.features.gates import DEFAULT, GateError, Gates, emulated, parse_gates
from nominee.invariants.evidence import Settings
from nominee.supervisor.directory import StateDirectory
from nominee.supervisor.node_ranges import option_value
from nominee.supervisor.spec import ClusterSpec, ProcessSpec

CLEARING: Final = "ClearingNominatedNodeNameAfterBinding"
RESIZE_PREEMPTION: Final = "InPlacePodVerticalScalingSchedulerPreemption"
_NOMINATING: Final = "--allow-nominated-node-name-of-deferred-resizes"


@dataclass(frozen=True, slots=True)
class _Process:
    """What one process was started with."""

    component: str
    gates: Mapping[str, bool]
    compat: str = ""


def read_plan(directory: Path) -> ClusterSpec | None:
    """Return the plan of the last `nominee up` in a state directory, or None."""
    try:
        return ClusterSpec.from_json(StateDirectory(directory).plan.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def settings_of(directory: Path, *, records_acknowledged: bool = False) -> Settings:
    """Return the settings of the processes that run now, or of the plan if none runs."""
    plan = read_plan(directory)
    processes = list(_running(directory)) or [
        found for spec in (plan.processes if plan else ()) if (found := _planned(spec)) is not None
    ]
    compats = {process.compat for process in processes if process.component == "autoscaler"}
    servers = [spec for spec in (plan.processes if plan else ()) if spec.component == "apiserver"]
    return Settings(
        clears_nominations=_gate(processes, "apiserver", CLEARING),
        nominates_deferred_resizes=bool(servers) and all(_NOMINATING in spec.argv for spec in servers),
        preempts_for_resizes=_gate(processes, "scheduler", RESIZE_PREEMPTION),
        protects_nominated_nodes=compats == {"fixed"} if compats else None,
        records_acknowledged=records_acknowledged,
    )


def _gate(processes: list[_Process], component: str, gate: str) -> bool | None:
    """Return the gate's value in all processes of a component; None if they differ, or do not have it."""
    values = {process.gates.get(gate) for process in processes if process.component == component}
    return values.pop() if len(values) == 1 else None


def _running(directory: Path) -> Iterator[_Process]:
    for document in StateDirectory(directory).live_run_files().values():
        gates = document.get("featureGates")
        if isinstance(gates, dict):
            yield _Process(str(document.get("component")), gates, str(document.get("compat", "")))


def _planned(spec: ProcessSpec) -> _Process | None:
    try:
        version = emulated(option_value(spec.argv, "--emulated-version", str(DEFAULT)))
        gates = Gates(spec.component, version, parse_gates(option_value(spec.argv, "--feature-gates", "")))
    except (ValueError, GateError):
        return None
    return _Process(spec.component, gates.all(), option_value(spec.argv, "--compat", ""))
