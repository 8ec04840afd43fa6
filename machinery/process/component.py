"""A component's main program: options, logging, signals, serving port, run file, and a clean end.

    @component_command("scheduler")
    @click.option("--config", default=None)
    def main(process: Process, config: str | None) -> None:
        process.run(lambda: run_scheduler(process, config))

The life of a process: die with the parent; read options; open the serving port; run the body; the body
connects, starts, and announces itself (D/run/<name>.json). SIGTERM, SIGINT or SIGHUP set `stopping`; a body
that waits for it has its grace to return, one that does not is cancelled at once. A second signal cancels.
"""

from __future__ import annotations

import functools
import gc
import os
import random
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.abc
import click

from nominee.machinery.features import gates as versions
from nominee.machinery.process import file_lock, option_types, run_files
from nominee.machinery.process.parent_death import die_with_parent
from nominee.machinery.process.run_files import RunFile
from nominee.machinery.process.serving_port import serving_token
from nominee.machinery.process.serving_port.serving import Serving
from nominee.machinery.process.signals import termination_signals
from nominee.machinery.runtime import failpoints, host, logs
from nominee.machinery.runtime.clock import Clock, SystemClock, rfc3339
from nominee.machinery.runtime.faults import call_faults
from nominee.machinery.runtime.faults.call_faults import FAULTS
from nominee.machinery.runtime.runtime import RUNTIME

if TYPE_CHECKING:
    from nominee.machinery.client.api_client import Client

DEFAULT_DIRECTORY = ".nominee"
GRACE_SECONDS = 10.0
KILL_SECONDS = 5.0
"""After its grace a body is cancelled; if it is still there after this, the process ends without it."""
DEPENDENCY_SECONDS_MAX = 60.0
EXIT_FAILED = 1
EXIT_USAGE = 2
"""Options or a configuration that this process refuses: a supervisor need not try again. As click's."""
_GARBAGE_YOUNG, _GARBAGE_MIDDLE, _GARBAGE_OLD = 20_000, 10, 10
"""The thresholds for gc.set_threshold."""

Body = Callable[[], Awaitable[None]]


class Fatal(Exception):  # a verdict, not a bug
    """The process cannot go on; the text has reason and remedy. Logged without a traceback, status 1."""

    status = EXIT_FAILED


class BadConfiguration(Fatal):
    """A configuration that cannot work: as Fatal, but status 2, as for a wrong option."""

    status = EXIT_USAGE


def _settle_garbage_collection() -> None:
    """Exempt all loaded objects from garbage collection, and collect after 20,000 new objects only.

    By default Python collects after each 700 objects, and finds little: 6% of a busy API server's time,
    22% of that of a kubelet with 1,000 idle nodes. Calls leave no cycles behind; reference counts free them.
    Nothing is collected now: it would hold up the first events by 50 ms and more.
    """
    gc.freeze()
    gc.set_threshold(_GARBAGE_YOUNG, _GARBAGE_MIDDLE, _GARBAGE_OLD)


class Process:
    """The environment of a component's body: its directory, clock, ports and clients."""

    owns_interpreter = True
    """Whether the component may change the whole interpreter, such as its garbage collection."""

    @staticmethod
    def prepare() -> None:
        """Prepare the interpreter for a component, before its options are checked."""
        die_with_parent()

    def __init__(
        self,
        component: str,
        *,
        name: str = "",
        directory: Path | str = DEFAULT_DIRECTORY,
        apiserver: str = "",
        version: versions.Version = versions.DEFAULT,
        gates: versions.Gates | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        bind_address: str = "127.0.0.1",
        port: int = 0,
        armed: Mapping[str, str] | None = None,
        log_level: logs.Level = "info",
        log_format: logs.Format = "text",
        one_per_directory: bool = False,
        check_only: bool = False,
    ) -> None:
        self.component = component
        self.name = name or component
        self.directory = Path(directory)
        self.apiserver = apiserver
        self.version = version
        self.gates = gates or versions.Gates(component, version)
        self.clock: Clock = clock or SystemClock()
        self.rng = rng or random.Random()
        self.serving = Serving(bind_address, port)
        self.stopping = anyio.Event()
        self._stop_asked = anyio.Event()
        self._grace_wanted = False
        self.step = "start"
        self._armed = dict(armed or {})
        self._log_level: logs.Level = log_level
        self._log_format: logs.Format = log_format
        self.one_per_directory = one_per_directory
        self._check_only = check_only
        self._announced = False
        self._clients: list[Client] = []
        self._started = self.clock.now()
        self.log = logs.get()
        self.serving.health.add("announced", self._check_announced, ["readyz"])

    def run(
        self,
        body: Body,
        *,
        check: Callable[[], object] | None = None,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        """Run the body on an event loop of its own, and end the process with an exit status.

        0 after the body returned or was stopped, 1 after an error (2 after BadConfiguration), which is logged
        with `step`. `check` is what the body does before it needs another process: with --check-options only
        that is done.
        """
        logs.configure(self.name, level=self._log_level, format=self._log_format, clock=self.clock)
        for warning in self.gates.warnings:
            self.log.warning(warning)
        if self._check_only:
            sys.exit(self._check(check))
        try:
            lock = self._lock()
        except Fatal as error:
            sys.exit(self._report(error))
        failpoints.REGISTRY.rng = self.rng
        failpoints.REGISTRY.clock = self.clock
        failpoints.REGISTRY.on_fire = self._on_fire
        failpoints.arm_early(self._armed)
        FAULTS.rng, FAULTS.clock, FAULTS.on_first = self.rng, self.clock, self._on_fault
        status = anyio.run(
            functools.partial(self._main, body, grace_seconds), backend_options={"use_uvloop": True}
        )
        os.close(lock)
        sys.exit(status)

    def _check(self, check: Callable[[], object] | None) -> int:
        self.step = "check the options"
        try:
            if check is not None:
                check()
        except Fatal as error:
            return self._report(error)
        return 0

    def _lock(self) -> int:
        """Lock D/run/<name>.lock until this process ends.

        Two processes of one name would overwrite each other's run file and state. The kernel frees the lock
        of a process that was killed.

        Raises:
            Fatal: another process holds it.
        """
        name = self.component if self.one_per_directory else self.name
        try:
            return file_lock.acquire(self.directory / "run" / f"{name}.lock")
        except file_lock.HeldError as error:
            remedy = "end it first, or give another --dir"
            if not self.one_per_directory:
                remedy += " or --name"
            raise Fatal(f"{name} runs already in {self.directory} (pid {error.pid}); {remedy}") from None
        except OSError as error:
            raise Fatal(f"{self.directory} cannot be used: {error.strerror}; give another --dir") from None

    async def client(self, user_agent: str = "") -> Client:
        """Return a client of the API server, closed when the process ends; wait for the server's run file.

        Raises:
            Fatal: there is no run file after DEPENDENCY_SECONDS_MAX.
        """
        # 240 ms that components without the API server (etcd, cloud) would pay.
        from nominee.machinery.client.api_client import Client
        from nominee.machinery.client.credentials import NoCredential

        agent = user_agent or f"{self.name}/v{self.version}"
        if ":" in self.apiserver:
            client = Client(self.apiserver, user_agent=agent, batches=True)
        else:
            server = self.apiserver or "apiserver"
            found = await self.wait_for(server)
            try:
                client = Client(
                    found.grpc,
                    directory=self.directory,
                    component=server,
                    user_agent=agent,
                    credential=self.name,
                    batches=True,
                )
            except NoCredential as error:
                raise Fatal(str(error)) from None
        client.lists_newest_first = self.gates.enabled("WatchListClient")
        self._clients.append(client)
        return client

    async def wait_for(self, name: str, *, limit_seconds: float = DEPENDENCY_SECONDS_MAX) -> RunFile:
        """Return the run file of another process, as soon as it serves.

        Raises:
            Fatal: there is no run file after the limit.
        """
        self.step, before = f"wait for {name}", self.step
        try:
            found = await run_files.wait_for_run_file(
                self.directory, name, limit_seconds=limit_seconds, clock=self.clock
            )
        except TimeoutError as error:
            raise Fatal(f"{error}; start it, or give another --dir") from None
        self.step = before
        return found

    async def announce(self, **fields: str) -> None:
        """Report that this process is ready: write D/run/<name>.json, and let /readyz succeed from now on.

        `fields` are the component's own (its addresses, an effective option).

        Raises:
            BadConfiguration: a failpoint is armed that no module has declared; the fault would never happen.
        """
        if unknown := failpoints.REGISTRY.undeclared():
            raise BadConfiguration(f"--failpoints: {failpoints.REGISTRY.no_such(unknown[0])}")
        document = {
            "component": self.component,
            "name": self.name,
            "pid": host.current().pid(),
            "http": self.serving.address,
            **fields,
            "emulatedVersion": str(self.version),
            "featureGates": self.gates.effective(),
            "startTime": rfc3339(self._started),
        }
        if self.owns_interpreter:
            _settle_garbage_collection()
        run_files.write(self.directory, self.name, document)
        self._announced = True
        self.step = "serve"
        self.log.info("Ready", http=self.serving.address, **fields)

    def check_running(self) -> None:
        """Raise RuntimeError when the process is to stop: a health check."""
        if self.stopping.is_set():
            raise RuntimeError("process is shutting down")

    def _check_announced(self) -> None:
        if not self._announced:
            raise RuntimeError(f"not ready yet: {self.step}")

    def _on_fire(self, name: str, term: failpoints.Term, context: Mapping[str, str]) -> None:
        self.log.warning("Failpoint", name=name, action=term.action, argument=term.argument, **context)

    def _on_fault(self, rule: call_faults.Rule, call: call_faults.Call) -> None:
        """Log the first call on which a rule acts; the next ones would fill the log."""
        self.log.warning("Fault", action=rule.action, to=call.to, method=call.method, resource=call.resource)

    async def _main(self, body: Body, grace_seconds: float) -> int:
        try:
            async with anyio.create_task_group() as group:
                await group.start(self._watch_signals, group, grace_seconds)
                self.step = "open the serving port"
                self.serving.token = self._serving_token()
                await group.start(self.serving.run)
                self.step = "start"
                await self._supervise(body, grace_seconds)
                group.cancel_scope.cancel()
        except BaseExceptionGroup as failed:
            return self._report(failed)
        except Exception as failed:  # noqa: BLE001  # the last handler there is
            return self._report(failed)
        finally:
            run_files.remove(self.directory, self.name, host.current().pid())
            with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                for client in self._clients:
                    await client.close()
        if self.stopping.is_set():
            self.log.info("Stopped")
        return 0

    def _serving_token(self) -> str:
        try:
            return serving_token.ensure(self.directory)
        except (OSError, UnicodeDecodeError) as error:
            raise Fatal(f"no token for the serving port: {error}") from None

    async def _supervise(self, body: Body, grace_seconds: float) -> None:
        """Run the body until it returns or, after a signal, until its grace period is over."""
        async with anyio.create_task_group() as group:

            async def run_body() -> None:
                await body()
                group.cancel_scope.cancel()

            group.start_soon(run_body)
            await self._stop_asked.wait()
            if self._grace_wanted:
                await self.clock.sleep(grace_seconds)
                self.log.warning("Not stopped in time, cancelled", grace_seconds=grace_seconds)
            group.cancel_scope.cancel()

    async def _watch_signals(
        self, group: anyio.abc.TaskGroup, grace_seconds: float, *, task_status: anyio.abc.TaskStatus[None]
    ) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, *termination_signals()) as received:
            task_status.started()
            async for number in received:
                name = signal.Signals(number).name
                if self.stopping.is_set():
                    self.log.warning("Stopped at once", signal=name)
                    group.cancel_scope.cancel()
                    return
                self.step = "stop"
                self.log.info("Stopping", signal=name)
                _exit_after(grace_seconds + KILL_SECONDS)
                # Only a body that listens can make use of a grace.
                self._grace_wanted = self.stopping.statistics().tasks_waiting > 0
                self.stopping.set()
                self._stop_asked.set()

    def _report(self, failed: BaseException) -> int:
        """Log the errors that end the process, and return its exit status: of several, the lowest."""
        statuses = []
        for error in _leaves(failed):
            if isinstance(error, Fatal):
                self.log.error(str(error), step=self.step)
                statuses.append(error.status)
            else:
                self.log.error("Failed", step=self.step, error=repr(error), exc_info=error)
                statuses.append(EXIT_FAILED)
        return min(statuses, default=EXIT_FAILED)


def _process_type() -> type[Process]:
    """Return the type of process that a component's command makes."""
    runtime = RUNTIME.get()
    return Process if runtime is None else cast("type[Process]", runtime.process_type)


def _leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for each in error.exceptions for leaf in _leaves(each)]


def _exit_after(seconds: float) -> None:
    """Kill the process after this many seconds if its shutdown has not ended by then."""
    watchdog = threading.Timer(seconds, os._exit, (EXIT_FAILED,))
    watchdog.daemon = True
    watchdog.start()


def component_command(
    component: str, *, help: str | None = None, one_per_directory: bool = False
) -> Callable[[Callable[..., None]], click.Command]:
    """Make `main(process, ...)` a click command with the options that every component has.

    Of a component with `one_per_directory` a directory has one process, whatever its name.
    """

    def decorate(main: Callable[..., None]) -> click.Command:
        @functools.wraps(main)
        def command(*, feature_gates: dict[str, bool], seed: int | None, **given: Any) -> None:
            process_type = _process_type()
            process_type.prepare()
            try:
                gates = versions.Gates(component, given["version"], feature_gates)
            except versions.GateError as error:
                raise click.BadParameter(str(error), param_hint="--feature-gates") from None
            process = process_type(
                component,
                gates=gates,
                rng=random.Random(seed),
                one_per_directory=one_per_directory,
                **{name: given.pop(name) for name in _OF_PROCESS},
            )
            main(process, **given)

        for option in reversed(_common_options(component)):
            option(command)
        return click.command(component, help=help or main.__doc__, context_settings=_SETTINGS)(command)

    return decorate


_OF_PROCESS = (
    "directory", "name", "apiserver", "version", "bind_address", "port", "armed", "log_level", "log_format",
    "check_only",
)  # fmt: skip
"""The options that a `Process` takes as they are."""
_SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


def _common_options(component: str) -> list[Callable[[Any], Any]]:
    return [
        click.option(
            "--dir",
            "directory",
            type=click.Path(path_type=Path),
            default=Path(DEFAULT_DIRECTORY),
            envvar="NOMINEE_DIR",
            help="State directory of the cluster.",
        ),
        click.option("--name", default=component, help="Name of the process in the cluster."),
        click.option(
            "--apiserver",
            default="",
            metavar="HOST:PORT|NAME",
            type=option_types.ApiServer(),
            help="The API server: its gRPC address, or of several of DIR its name (apiserver-1); "
            "default: any of DIR.",
        ),
        click.option(
            "--emulated-version",
            "version",
            default=str(versions.DEFAULT),
            metavar="1.NN",
            callback=option_types.reading(versions.parse_emulated_version),
            help="The Kubernetes version to emulate.",
        ),
        click.option(
            "--feature-gates",
            multiple=True,
            metavar="A=true,B=false",
            callback=option_types.reading_all(versions.parse_gates),
            help="Feature gates. Repeatable.",
        ),
        click.option("--bind-address", default="127.0.0.1", help="Address of the serving port."),
        click.option("--port", default=0, type=click.IntRange(0, 65535), help="Serving port; 0: a free one."),
        click.option(
            "--failpoints",
            "armed",
            default="",
            metavar="NAME=ACTION;...",
            callback=option_types.reading(failpoints.parse_list),
            help="Arm failpoints at the start.",
        ),
        click.option("-v", "--log-level", type=click.Choice(logs.LEVELS), default="info", help="Log level."),
        click.option("--log-format", type=click.Choice(logs.FORMATS), default="text", help="Log format."),
        click.option("--seed", type=int, default=None, help="Seed of random numbers."),
        click.option("--check-options", "check_only", is_flag=True, help="Check the options and exit."),
    ]
