"""The output of `up`, and the description of the cluster in `status` and D/cluster.json."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TextIO

from nominee.localcluster.output import discard
from nominee.localcluster.supervisor.directory import JsonObject, StateDirectory, read_json
from nominee.localcluster.supervisor.model.core import ProcessState, Supervision
from nominee.localcluster.supervisor.model.spec import ClusterSpec
from nominee.localcluster.supervisor.model.states import RUNNING, ChildState

ANNOUNCED = (
    *("http", "grpc", "rest", "emulatedVersion", "version", "featureGates", "compat", "warning", "startTime"),
)
"""Keys that a description copies from a process's run file."""


_DASHBOARD: Final = "dashboard"


def describe_process(
    process: ProcessState, component: str, pid: int | None, directory: StateDirectory
) -> JsonObject:
    """Return a description of one process: its state, and the addresses in its run file."""
    description: JsonObject = {
        "name": process.name,
        "component": component,
        "state": str(process.state),
        "pid": pid,
        "restarts": process.restarts,
        "log": str(directory.log_file(process.name)),
    }
    if process.last_exit:
        description["lastExit"] = process.last_exit
    announced = read_json(directory.run_file(process.name)) if process.state in RUNNING else None
    if announced is not None and announced.get("pid") == pid:
        description |= {key: announced[key] for key in ANNOUNCED if key in announced}
    return description


def describe_cluster(
    spec: ClusterSpec,
    supervision: Supervision,
    pids: Mapping[str, int],
    directory: StateDirectory,
    *,
    supervisor_pid: int,
    ready_after_seconds: float | None,
) -> JsonObject:
    """Return a description of the cluster; components in the order in which they are started."""
    return {
        "directory": str(spec.directory),
        "ready": supervision.all_ready,
        "closing": supervision.closing,
        "readyAfterSeconds": ready_after_seconds,
        "supervisor": {"pid": supervisor_pid, "socket": str(directory.run / "supervisor.sock")},
        "components": [
            describe_process(
                supervision.processes[process.name],
                process.component,
                pids.get(process.name),
                directory,
            )
            for process in spec.processes
        ],
    }


def ready_lines(cluster: JsonObject, hint: str) -> list[str]:
    """Return one line for each component, and the next commands to use."""
    components = cluster["components"]
    width = max((len(component["name"]) for component in components), default=0)
    lines = [f"  {component['name']:<{width}}  {_line(component)}" for component in components]
    if cluster["ready"]:
        lines.append(f"ready after {cluster['readyAfterSeconds']:.1f} s: {cluster['directory']}/cluster.json")
    lines += [f"dashboard: {url}" for url in map(_url, components) if url]
    lines.append(f"next: nominee status{hint} | nominee get nodes{hint} | nominee down{hint}")
    return lines


def _url(component: JsonObject) -> str:
    """Return the URL of the dashboard, with its token; "" for another process."""
    if component["component"] != _DASHBOARD or not component.get("http"):
        return ""
    # 1 MiB that a supervisor without a dashboard would need, too.
    from nominee.machinery.process.serving_port import serving_token

    known = serving_token.read(Path(component["log"]).parents[1])
    token = serving_token.derive(known, _DASHBOARD)
    return f"http://{component['http']}/?token={token}"


def _line(component: JsonObject) -> str:
    parts = [f"{component['state']:<8}", f"pid {component['pid'] or '-':<7}"]
    version = component.get("emulatedVersion") or component.get("version")
    parts.append(f"{version or '-':<7}")
    parts += [f"{key} {component[key]}" for key in ("grpc", "rest", "http") if component.get(key)]
    return "  ".join(parts)


def failure_lines(
    processes: Sequence[ProcessState], directory: StateDirectory, log_starts: Mapping[str, int]
) -> list[str]:
    """Return why processes are not ready: their last exit and the end of their logs."""
    lines = []
    for process in processes:
        fate = f", last {process.last_exit}" if process.last_exit else ""
        lines.append(
            f"{process.name} is {process.state}{fate}; the end of its log {directory.log_file(process.name)}:"
        )
        tail = directory.log_tail(process.name, start=log_starts.get(process.name, 0))
        lines += [f"    {line}" for line in tail] or ["    (empty)"]
    return lines


def event_line(process: ProcessState, came_from: ChildState, now: float) -> str | None:
    """Return a line about a process that changed its state after the cluster was ready, or None."""
    if process.state is ChildState.BACKOFF:
        wait = max((process.deadline or now) - now, 0.0)
        return f"{process.name} died ({process.last_exit}); starts again in {wait:.1f} s"
    if process.state is ChildState.CRASHED:
        return f"{process.name} died ({process.last_exit}) and is left down; `nominee start {process.name}`"
    if process.state is ChildState.READY and came_from is ChildState.STARTING:
        return f"{process.name} is ready"
    if process.state in (ChildState.DOWN, ChildState.PAUSED):
        return f"{process.name} is {process.state}"
    return None


class Printer:
    """Print lines until the reader is gone, then nothing.

    A closed terminal ends the cluster by its SIGHUP, not by an error, and does not change the exit
    status.
    """

    def __init__(self, out: TextIO | None) -> None:
        self._out = out

    def __call__(self, line: str) -> None:
        if self._out is None:
            return
        try:
            print(line, file=self._out, flush=True)
        except (OSError, ValueError):
            discard(self._out)
            self._out = None


def shell_words(argv: Sequence[str]) -> str:
    """Return a command line quoted for a shell."""
    return shlex.join(argv)
