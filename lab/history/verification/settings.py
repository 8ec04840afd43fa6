"""The configuration of a cluster, from the run files of its processes, or the plan of one that is down."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from nominee.lab.history.connection import read_plan
from nominee.lab.history.invariants.checking.evidence import (
    EXPENDABLE_BELOW,
    ComponentSettings,
    ScaleDown,
)
from nominee.localcluster.supervisor.directory import StateDirectory, command_line
from nominee.localcluster.supervisor.model.node_ranges import option_value
from nominee.machinery.features.gates import DEFAULT, GateError, Gates, parse_emulated_version, parse_gates
from nominee.machinery.wire.values.scalars import parse_seconds

CLEARING: Final = "ClearingNominatedNodeNameAfterBinding"
RESIZE_PREEMPTION: Final = "InPlacePodVerticalScalingSchedulerPreemption"
WATCH_LIST: Final = "WatchListClient"
_NOMINATING: Final = "--allow-nominated-node-name-of-deferred-resizes"


@dataclass(frozen=True, slots=True)
class Configured:
    """Gates and options of one process that checkers need."""

    component: str
    gates: Mapping[str, bool]
    compat: str = ""
    nominates_deferred_resizes: bool = False
    scale_down: ScaleDown | None = None


def settings_of(directory: Path, *, records_acknowledged: bool = False) -> ComponentSettings:
    """Return the settings of the processes that run now; of a component that does not, those of the plan.

    Options of a scale-down are unknown if an autoscaler runs with others than the plan's: it was restarted.
    """
    plan = read_plan(directory)
    specs = plan.processes if plan is not None else ()
    planned = [found for spec in specs if (found := of_arguments(spec.component, spec.argv)) is not None]
    running = list(_running(directory))
    have = {process.component for process in running}
    processes = running + [process for process in planned if process.component not in have]
    settings = settings_from(processes, records_acknowledged=records_acknowledged)
    scale_downs = {each.scale_down for each in (*planned, *running) if each.scale_down is not None}
    return settings if len(scale_downs) == 1 else replace(settings, scale_down=None)


def settings_from(
    processes: Collection[Configured], *, records_acknowledged: bool = False
) -> ComponentSettings:
    """Return the settings of processes; a value in which those of one component differ is None."""

    def gate(component: str, name: str) -> bool | None:
        values = {process.gates.get(name, False) for process in processes if process.component == component}
        return values.pop() if len(values) == 1 else None

    scale_downs = {process.scale_down for process in processes if process.component == "autoscaler"}
    compats = {process.compat for process in processes if process.component == "autoscaler"}
    return ComponentSettings(
        clears_nominations=gate("apiserver", CLEARING),
        nominates_deferred_resizes=any(process.nominates_deferred_resizes for process in processes),
        preempts_for_resizes=gate("scheduler", RESIZE_PREEMPTION),
        scale_down=scale_downs.pop() if len(scale_downs) == 1 else None,
        protects_nominated_nodes=compats == {"fixed"} if compats else None,
        lists_newest=frozenset(
            component for component in {each.component for each in processes} if gate(component, WATCH_LIST)
        ),
        records_acknowledged=records_acknowledged,
    )


def of_arguments(component: str, arguments: Sequence[str]) -> Configured | None:
    """Return the settings of a command line; None for one that is not Nominee's."""
    try:
        version = parse_emulated_version(option_value(arguments, "--emulated-version", str(DEFAULT)))
        gates = Gates(component, version, parse_gates(option_value(arguments, "--feature-gates", "")))
        scale_down = _scale_down(arguments) if component == "autoscaler" else None
    except (ValueError, GateError):
        return None
    return Configured(
        component,
        gates.all(),
        option_value(arguments, "--compat", ""),
        nominates_deferred_resizes=_NOMINATING in arguments,
        scale_down=scale_down,
    )


def _scale_down(arguments: Sequence[str]) -> ScaleDown:
    return ScaleDown(
        unneeded_seconds=parse_seconds(option_value(arguments, "--scale-down-unneeded-time", "10m")),
        scan_seconds=parse_seconds(option_value(arguments, "--scan-interval", "10s")),
        threshold=float(option_value(arguments, "--scale-down-utilization-threshold", "0.5")),
        expendable_below=int(
            option_value(arguments, "--expendable-pods-priority-cutoff", str(EXPENDABLE_BELOW))
        ),
    )


def _running(directory: Path) -> Iterator[Configured]:
    """Yield the settings of the processes that run: gates as they report them, options from their start."""
    for document in StateDirectory(directory).live_run_files().values():
        gates = document.get("featureGates")
        if isinstance(gates, dict):
            component, compat = str(document.get("component")), str(document.get("compat", ""))
            started = of_arguments(component, command_line(document["pid"])) or Configured(component, gates)
            yield replace(started, gates=gates, compat=compat)
