"""The supervisor's loop: one thread, one selector; it performs the actions of `core` with real processes."""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from nominee.localcluster.supervisor.children import Child, describe_exit
from nominee.localcluster.supervisor.clock import Monotonic, klog_time
from nominee.localcluster.supervisor.commands.control import Answer, Control, Pending
from nominee.localcluster.supervisor.directory import (
    JsonObject,
    StateDirectory,
    process_letter,
    write_atomically,
)
from nominee.localcluster.supervisor.model.core import Action, Supervision, UnknownProcessError
from nominee.localcluster.supervisor.model.spec import FIRST_SECONDS_MAX, ClusterSpec, ProcessSpec
from nominee.localcluster.supervisor.model.states import RUNNING, ChildState, Effect, Trigger
from nominee.localcluster.supervisor.one_shot import CHECK_OPTION, CHECK_SECONDS_MAX, OneShot
from nominee.localcluster.supervisor.readiness import INTERVAL_SECONDS, Probe
from nominee.localcluster.supervisor.report import (
    Printer,
    describe_cluster,
    event_line,
    failure_lines,
    ready_lines,
)
from nominee.machinery.process.signals import termination_signals
from nominee.machinery.runtime.state_table import InvalidTransitionError

_IDLE_SECONDS_MAX = 5.0
_REMOVAL_SECONDS_MAX = 60.0
_KILLED = "killed"
"""In the log, for a process that is killed by a command or after its time limit; no state of its own."""
_TRIGGERS = {
    ("start", False): Trigger.START,
    ("stop", False): Trigger.STOP,
    ("stop", True): Trigger.KILL,
    ("restart", False): Trigger.RESTART,
    ("restart", True): Trigger.RESTART_KILL,
    ("pause", False): Trigger.PAUSE,
    ("resume", False): Trigger.RESUME,
}


class Supervisor:
    """The supervisor of one cluster, from the first start to the last exit."""

    def __init__(self, spec: ClusterSpec, clock: Monotonic, out: Printer, errors: Printer) -> None:
        self._spec, self._clock, self._print, self._print_error = spec, clock, out, errors
        self._directory = StateDirectory(spec.directory)
        self._specs = {process.name: process for process in spec.processes}
        self._core = Supervision([(p.name, p.stop_stage) for p in spec.processes], spec.policy)
        self._children: dict[str, Child] = {}
        self._probes: dict[str, Probe] = {}
        self._log_starts: dict[str, int] = {}
        self._seen: dict[str, ChildState] = {}
        self._started = self._group_started = clock()
        self._ready_after: float | None = None
        self._failure: list[str] = []
        self._signals = 0
        self._removal: OneShot | None = None
        self._first: OneShot | None = None
        self._first_is_done = not spec.first
        self._later = list(spec.later)
        self._selector = selectors.DefaultSelector()
        self._control: Control | None = None

    def run(self) -> int:
        """Run until no process is left; return 0 after an ordered stop, 1 if the cluster did not start."""
        with _signal_socket() as wakeup:
            self._selector.register(wakeup, selectors.EVENT_READ, lambda _mask: self._on_signals(wakeup))
            self._control = Control(self._directory.run / "supervisor.sock", self._selector, self._command)
            try:
                later = {p.name for p in self._spec.processes if not p.starts_with_cluster}
                later.update(name for group in self._later for name in group)
                self._perform(self._core.start_all(self._started, without=later))
                while not self._core.closed:
                    self._turn()
                self._control.poll()
            finally:
                self._kill_all()
                self._control.close()
                self._directory.cluster.unlink(missing_ok=True)
        for line in self._failure:
            self._print_error(line)
        return 1 if self._failure else 0

    # -- the loop

    def _turn(self) -> None:
        for key, mask in self._selector.select(self._timeout()):
            callback: Callable[[int], None] = key.data
            callback(mask)
        self._reap()
        for probe in list(self._probes.values()):
            probe.poll()
        now = self._clock()
        self._perform(self._core.tick(now))
        self._report(now)
        assert self._control is not None
        self._control.poll()

    def _timeout(self) -> float:
        timeout = _IDLE_SECONDS_MAX
        now = self._clock()
        programs = self._removal is not None or self._first is not None
        if self._probes or programs or (self._control is not None and self._control.waiting):
            timeout = INTERVAL_SECONDS
        if self._core.next_deadline is not None:
            timeout = min(timeout, self._core.next_deadline - now)
        return max(timeout, 0.0)

    def _on_signals(self, wakeup: socket.socket) -> None:
        with suppress(BlockingIOError):
            for number in wakeup.recv(4096):
                if number != signal.SIGCHLD:
                    self._signals += 1
                    self._close(at_once=self._signals > 1)

    def _close(self, *, at_once: bool = False) -> None:
        if not self._core.closing:
            self._say("going down")
        self._perform(self._core.close(self._clock(), at_once=at_once))

    # -- processes

    def _perform(self, actions: list[Action]) -> None:
        """Perform actions; a process that cannot be started counts as one that exited at once."""
        for action in actions:
            if action.effect is not Effect.SPAWN:
                self._children[action.name].signal(action.effect)
                if action.effect is Effect.KILL and not self._core.closing:
                    self._log(action.name, _KILLED)
                continue
            try:
                self._spawn(self._specs[action.name])
            except OSError as error:
                self._perform(self._core.exited(action.name, 1, f"cannot start: {error}", self._clock()))
        for name, process in self._core.processes.items():
            if process.state is ChildState.STARTING and not self._specs[name].ready_path:
                self._core.became_ready(name, self._clock())
            elif process.state is ChildState.STARTING and name not in self._probes and name in self._children:
                self._probes[name] = Probe(
                    name,
                    self._children[name].pid,
                    self._specs[name].ready_path,
                    self._directory,
                    self._selector,
                    self._clock,
                    self._on_ready,
                )
            elif process.state is not ChildState.STARTING and name in self._probes:
                self._probes.pop(name).close()

    def _spawn(self, spec: ProcessSpec) -> None:
        self._directory.run_file(spec.name).unlink(missing_ok=True)
        log = self._directory.open_log(spec.name)
        try:
            first = spec.name not in self._log_starts
            self._log_starts[spec.name] = os.fstat(log).st_size
            argv = (*spec.argv, *spec.first_start) if first else spec.argv
            self._children[spec.name] = Child(argv, self._spec.environment, log)
        finally:
            os.close(log)

    def _on_ready(self, name: str) -> None:
        self._perform(self._core.became_ready(name, self._clock()))

    def _reap(self) -> None:
        for name, child in list(self._children.items()):
            code = child.poll()
            if code is not None:
                del self._children[name]
                if name in self._probes:
                    self._probes.pop(name).close()
                self._directory.run_file(name).unlink(missing_ok=True)
                self._perform(self._core.exited(name, code, describe_exit(code), self._clock()))

    def _kill_all(self) -> None:
        """Kill all processes after an error of the loop itself."""
        for program in (self._removal, self._first):
            if program is not None:
                program.kill()
        for child in self._children.values():
            child.signal(Effect.KILL)
        for child in self._children.values():
            child.popen.wait()

    # -- output

    def describe(self) -> JsonObject:
        """Return a description of the cluster."""
        return describe_cluster(
            self._spec,
            self._core,
            {name: child.pid for name, child in self._children.items()},
            self._directory,
            supervisor_pid=os.getpid(),
            ready_after_seconds=self._ready_after,
        )

    def _report(self, now: float) -> None:
        if self._core.closing:
            return
        if self._ready_after is None:
            self._report_start(now)
            return
        changed = False
        for name, process in self._core.processes.items():
            came_from = self._seen.get(name, ChildState.DOWN)
            if process.state is not came_from:
                self._seen[name] = process.state
                changed = True
                line = event_line(process, came_from, now)
                if line:
                    self._say(line)
                    self._log(name, process.state, process.last_exit)
        if changed:
            self._write_cluster()

    def _report_start(self, now: float) -> None:
        if self._core.all_ready and self._surplus_nodes_are_gone() and self._all_have_started(now):
            self._ready_after = round(now - self._started, 3)
            self._seen = {name: process.state for name, process in self._core.processes.items()}
            self._write_cluster()
            lines = ready_lines(self.describe(), self._spec.hint)
            for line in [json.dumps(self.describe(), indent=2)] if self._spec.json_output else lines:
                self._print(line)
            return
        hopeless = self._core.hopeless()
        # While the first program runs (an import), a process may restart.
        waits = not self._core.all_ready and self._first is None
        late = waits and now - self._group_started > self._spec.ready_seconds_max
        if hopeless or late:
            guilty = hopeless or [
                p for p in self._core.processes.values() if p.state not in (ChildState.READY, ChildState.DOWN)
            ]
            reason = "a component does not start" if hopeless else "not ready in time (--timeout)"
            self._failure = [
                f"error: {reason}: {', '.join(p.name for p in guilty)}",
                *failure_lines(guilty, self._directory, self._log_starts),
            ]
            self._close()

    def _surplus_nodes_are_gone(self) -> bool:
        """Delete the nodes of earlier kubelets of this directory; a failure is only reported."""
        if not self._spec.surplus_nodes:
            return True
        if self._removal is None:
            program = (
                sys.executable,
                "-P",
                "-m",
                "nominee.localcluster.surplus_nodes",
                f"--dir={self._spec.directory}",
            )
            self._removal = OneShot(
                program, self._spec.environment, self._clock, seconds_max=_REMOVAL_SECONDS_MAX
            )
        outcome = self._removal.poll()
        if outcome is None:
            return False
        surplus = ", ".join(map(str, self._spec.surplus_nodes))
        self._removal, self._spec = None, replace(self._spec, earlier_nodes=())
        if outcome.ok:
            self._say(outcome.output)
            write_atomically(self._directory.plan, self._spec.to_json())
        else:
            self._print_error(f"warning: {surplus}, which no kubelet has, remain: {outcome.output}")
        return True

    def _all_have_started(self, now: float) -> bool:
        """Run the first program, if there is one, and then start the next group of the later processes."""
        if not self._first_is_done:
            if self._first is None:
                self._first = OneShot(
                    self._spec.first, self._spec.environment, self._clock, seconds_max=FIRST_SECONDS_MAX
                )
            outcome = self._first.poll()
            if outcome is None:
                for line in self._first.new_lines():
                    self._say(line)
                return False
            self._first, self._first_is_done = None, True
            before, _, problem = outcome.rest.rpartition("Error: ")
            for line in (before if not outcome.ok else outcome.rest).splitlines():
                self._say(line)
            if not outcome.ok:
                self._failure = [f"error: {problem or outcome.output.rpartition('Error: ')[2]}"]
                self._close()
                return False
        if not self._later:
            return True
        self._group_started = now
        for name in self._later.pop(0):
            self._perform(self._core.ask(name, Trigger.START, now))
        return False

    def _write_cluster(self) -> None:
        write_atomically(self._directory.cluster, json.dumps(self.describe(), indent=2) + "\n")

    def _log(self, name: str, state: str, last_exit: str = "") -> None:
        """Write the state of a process with the time into the supervisor's log: a mark of the time line."""
        fate = f" exit={json.dumps(last_exit)}" if last_exit else ""
        line = f"I{klog_time()} supervisor] Process state={state} name={name}{fate}\n"
        log = self._directory.open_log("supervisor")
        try:
            os.write(log, line.encode())
        except OSError:  # the disk is full: the cluster goes on
            pass
        finally:
            os.close(log)

    def _say(self, line: str) -> None:
        """Print a message; on standard error if the output is JSON."""
        (self._print_error if self._spec.json_output else self._print)(line)

    # -- commands

    def _command(self, request: JsonObject) -> Answer | Pending:
        command = str(request.get("command"))
        if command == "status":
            return {"ok": True, "cluster": self.describe()}
        if command == "wait":
            return Pending(self._ready_answer)
        if command == "down":
            self._close(at_once=bool(request.get("kill")))
            return Pending(lambda: {"ok": True} if self._core.closed else None)
        if command == "check":
            return self._check(str(request.get("component")), [*map(str, request.get("arguments") or ())])
        if command == "extend":
            return self._extend(str(request.get("component")), [*map(str, request.get("arguments") or ())])
        trigger = _TRIGGERS.get((command, bool(request.get("kill"))))
        if trigger is None:
            kill = " with kill" if request.get("kill") else ""
            return {"ok": False, "error": f"unknown command {command!r}{kill}"}
        arguments = request.get("arguments")
        if arguments is not None and trigger not in (Trigger.START, Trigger.RESTART, Trigger.RESTART_KILL):
            return {"ok": False, "error": f"{command} takes no arguments; start and restart do"}
        return self._change(str(request.get("component")), trigger, arguments)

    def _ready_answer(self) -> Answer | None:
        if self._failure:
            return {"ok": False, "error": "\n".join(self._failure)}
        if self._core.closing:
            return {"ok": False, "error": "the cluster is going down"}
        return {"ok": True, "cluster": self.describe()} if self._ready_after is not None else None

    def _names(self, component: str) -> list[str]:
        """Return the processes with a name or of a component; the name itself if there is no such process."""
        if component in self._specs:
            return [component]
        return [p.name for p in self._spec.processes if p.component == component] or [component]

    def _check(self, component: str, arguments: Sequence[str]) -> Answer | Pending:
        """Check a component's arguments with its program; running processes are not touched."""
        name = self._names(component)[0]
        original = next((p for p in self._spec.processes if p.name == name), None)
        if original is None:
            return {"ok": False, "error": str(UnknownProcessError(name, self._specs))}
        check = OneShot(
            (*original.argv, *arguments, CHECK_OPTION),
            self._spec.environment,
            self._clock,
            seconds_max=CHECK_SECONDS_MAX,
        )

        def answer() -> Answer | None:
            outcome = check.poll()
            if outcome is None or outcome.ok:
                return None if outcome is None else {"ok": True}
            return {"ok": False, "error": f"{name} rejects these options:\n{outcome.output}"}

        return Pending(answer)

    def _change(
        self, component: str, trigger: Trigger, arguments: Sequence[str] | None = None
    ) -> Answer | Pending:
        """Append `arguments` to the process's own, so that they override them; `()` changes nothing."""
        names = self._names(component)
        before = dict(self._specs)
        if arguments is not None:
            for original in self._spec.processes:
                if original.name in names:
                    argv = (*original.argv, *map(str, arguments))
                    self._specs[original.name] = replace(original, argv=argv)
        try:
            for name in names:
                self._perform(self._core.ask(name, trigger, self._clock()))
        except (UnknownProcessError, InvalidTransitionError) as error:
            self._specs = before
            return {"ok": False, "error": str(error)}
        return Pending(lambda: self._settled(names, trigger))

    def _extend(self, name: str, arguments: Sequence[str]) -> Answer:
        """Append arguments to a process's own for good, from its next start; not those that it has."""
        if name not in self._specs:
            return {"ok": False, "error": str(UnknownProcessError(name, self._specs))}

        def extended(process: ProcessSpec) -> ProcessSpec:
            has = process.name != name or set(arguments) <= set(process.argv)
            return process if has else replace(process, argv=(*process.argv, *arguments))

        self._spec = replace(self._spec, processes=tuple(map(extended, self._spec.processes)))
        self._specs[name] = extended(self._specs[name])
        write_atomically(self._directory.plan, self._spec.to_json())
        return {"ok": True}

    def _settled(self, names: list[str], trigger: Trigger) -> Answer | None:
        """Return the answer to a command when its processes have reached the state that it asks for."""
        processes = [self._core.processes[name] for name in names]
        if self._core.closing and trigger not in (Trigger.STOP, Trigger.KILL):
            return {"ok": False, "error": "the cluster is going down"}
        if trigger in (Trigger.STOP, Trigger.KILL):
            done = not any(p.state in RUNNING for p in processes)
        elif trigger is Trigger.PAUSE:
            if any(p.state is not ChildState.PAUSED for p in processes):
                return {"ok": False, "error": f"{', '.join(names)} died before it was paused"}
            done = all(process_letter(self._children[name].pid) == "T" for name in names)
        else:
            crashed = [p for p in processes if p.state is ChildState.CRASHED]
            if crashed:
                lines = failure_lines(crashed, self._directory, self._log_starts)
                return {"ok": False, "error": "\n".join(lines)}
            done = all(p.state is ChildState.READY for p in processes)
        if not done:
            return None
        described = [c for c in self.describe()["components"] if c["name"] in names]
        return {"ok": True, "components": described}


class _signal_socket:
    """A socket that receives a byte for each signal: handlers do nothing, the selector wakes."""

    def __enter__(self) -> socket.socket:
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)
        for number in (signal.SIGINT, *termination_signals(), signal.SIGCHLD):
            signal.signal(number, lambda _number, _frame: None)
        self._old = signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        return self._read

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._old)
        self._read.close()
        self._write.close()
