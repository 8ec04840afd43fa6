"""A cluster of processes that runs in a state directory, as Python code operates it: `RunningCluster`.

All calls block, with a limit. An event loop calls them in a thread.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import quote

from nominee.localcluster.etcd import links as etcd_links
from nominee.localcluster.supervisor.commands.client import NotRunningError, RefusedError, call
from nominee.localcluster.supervisor.directory import JsonObject, StateDirectory
from nominee.machinery.process.serving_port.serving_client import HttpAnswer, HttpError, ServingPort, request
from nominee.machinery.runtime.faults.call_faults import CallCount, RuleState
from nominee.machinery.runtime.faults.failpoint_registry import PointState
from nominee.machinery.wire.values.scalars import Json

COMMAND_SECONDS_MAX: Final = 60.0
"""How long the supervisor may take for a command: a component is ready, or stopped, when it answers."""


class ClusterError(Exception):
    """The cluster cannot carry out the request; the message has the process and the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultState:
    """The faults of a process as its serving port has them, and the calls that it made while it had some."""

    rules: Sequence[RuleState]
    calls: Sequence[CallCount]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessState:
    """A process of the cluster; `state` is the supervisor's (`localcluster/supervisor/model/states.py`)."""

    name: str
    component: str
    state: str
    restarts: int = 0
    last_exit: str = ""
    pid: int | None = None
    """None: the process does not run."""


class RunningCluster:
    """A cluster below the supervisor of `nominee up`.

    A component is named as on the command line: `scheduler`, or `kubelet` for all of several processes, or
    `kubelet-1` for one of them. `get`, `get_json` and `failpoints` ask the first of several.

    Raises:
        ClusterError: the cluster does not run, refuses, or does not answer (every method).
    """

    def __init__(self, directory: Path | str) -> None:
        self._state = StateDirectory(Path(directory).absolute())

    @property
    def directory(self) -> Path:
        """Return the state directory."""
        return self._state.path

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig, for kubectl and client libraries."""
        return self._state.path / "kubeconfig"

    def processes(self) -> Sequence[ProcessState]:
        """Return the state of every process, in the order of starting."""
        return [
            ProcessState(
                name=each["name"],
                component=each["component"],
                state=each["state"],
                restarts=each["restarts"],
                last_exit=each.get("lastExit", ""),
                pid=each.get("pid"),
            )
            for each in self._ask("status")["cluster"]["components"]
        ]

    def wait_until_ready(self, seconds_max: float = COMMAND_SECONDS_MAX) -> None:
        """Return when every process that should run is ready."""
        self._ask("wait", seconds_max=seconds_max)

    def start(self, component: str, arguments: Sequence[str] = ()) -> None:
        """Start a component that is down, with more arguments; return when it is ready."""
        self._ask("start", component, arguments=list(arguments))

    def stop(self, component: str, *, kill: bool = False) -> None:
        """Stop a component, with SIGKILL if asked; it stays down."""
        self._ask("stop", component, kill=kill)

    def restart(self, component: str, arguments: Sequence[str] = (), *, kill: bool = False) -> None:
        """Stop a component and start it with more arguments; return when it is ready."""
        self._ask("restart", component, kill=kill, arguments=list(arguments))

    def pause(self, component: str) -> None:
        """Stop a process with SIGSTOP."""
        self._ask("pause", component)

    def resume(self, component: str) -> None:
        """Continue a paused process."""
        self._ask("resume", component)

    def get(self, process: str, path: str) -> HttpAnswer:
        """Return a process's answer at a path of its serving port, such as `/metrics`."""
        return self._request(process, path)

    def get_json(self, process: str, path: str) -> Json:
        """Return the JSON that a process answers at a path of its serving port, such as `/debug/queue`."""
        answer = self.get(process, path)
        try:
            document: Json = json.loads(answer.body)
        except ValueError:
            raise ClusterError(f"{process}{path} answers {answer.content_type or 'text'}, not JSON") from None
        return document

    def failpoints(self, process: str) -> Sequence[PointState]:
        """Return the failpoints of a process."""
        return [
            PointState(
                name=each["name"],
                action=each["action"],
                hits=each["hits"],
                fired=each["fired"],
                waiting=each["waiting"],
                last=each["last"],
            )
            for each in self.get_json(process, "/failpoints")
        ]

    def arm_failpoint(self, component: str, name: str, action: str) -> None:
        """Arm a failpoint in every running process of a component (docs/failpoints.md: names, actions)."""
        for process in self._names(component):
            self._request(process, f"/failpoints/{quote(name)}", method="PUT", body=action)

    def set_fault(
        self, component: str, action: str, *, to: str = "*", method: str = "*", kind: str = "*"
    ) -> None:
        """Set a fault of the calls of running processes (docs/faults.md); the action `off` removes faults.

        Of etcd and its members the links between them are cut, or healed.
        """
        if component.startswith("etcd"):
            try:
                etcd_links.put(self.directory, component, to, action)
            except etcd_links.LinkError as error:
                raise ClusterError(str(error)) from None
            return
        body = json.dumps({"to": to, "method": method, "kind": kind, "action": action})
        for process in self._names(component):
            self._request(process, "/faults", method="PUT", body=body)

    def call_faults(self, process: str) -> FaultState:
        """Return the faults of a process."""
        document = self.get_json(process, "/faults")
        return FaultState(
            rules=[RuleState(**each) for each in document["rules"]],
            calls=[CallCount(**each) for each in document["calls"]],
        )

    def shift_clock(self, component: str, offset_seconds: float) -> None:
        """Shift the wall clock of a component's running processes."""
        body = json.dumps({"offsetSeconds": offset_seconds})
        for process in self._names(component):
            self._request(process, "/clock", method="PUT", body=body)

    def _names(self, component: str) -> list[str]:
        processes = [each for each in self.processes() if component in (each.name, each.component)]
        if not processes:
            raise ClusterError(f"there is no process {component}")
        running = [each.name for each in processes if each.pid]
        if not running:
            raise ClusterError(f"{component} does not run")
        return running

    def _ask(
        self, command: str, component: str = "", *, seconds_max: float = COMMAND_SECONDS_MAX, **more: object
    ) -> JsonObject:
        fields = {**more, **({"component": component} if component else {})}
        try:
            return call(self._state, command, timeout_seconds=seconds_max, **fields)
        except (NotRunningError, RefusedError, TimeoutError) as error:
            raise ClusterError(f"{f'{command} {component}'.strip()}: {error}") from None

    def _request(self, process: str, path: str, *, method: str = "GET", body: str = "") -> HttpAnswer:
        running = self._state.live_run_files()
        # Of a component with several processes, the first.
        of_component = [name for name, each in running.items() if each.get("component") == process]
        run_file = running.get(process) or running.get(of_component[0] if of_component else "")
        if run_file is None or not run_file.get("http"):
            raise ClusterError(f"{process} does not run, or has no serving port")
        port = ServingPort.of(str(run_file["http"]), self._state.path)
        try:
            answer = request(port, path, method=method, body=body)
        except HttpError as error:
            raise ClusterError(f"{process}: {error}") from None
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise ClusterError(f"{process}{path} answers {answer.status}: {answer.text.strip()}")
        return answer
