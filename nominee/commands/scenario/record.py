"""`nominee scenario record`: write a scenario from a person's actions in a running cluster."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
import click

from nominee.commands.common import ask_supervisor
from nominee.lab.history.connection import read_plan
from nominee.lab.scenario.acting.base import ProcessView
from nominee.lab.scenario.record.recorded_cluster import cluster_of
from nominee.lab.scenario.record.recorder import STEPS_MAX, Recorder, described
from nominee.localcluster.etcd.links import states
from nominee.localcluster.supervisor.commands.client import NotRunningError, RefusedError, call
from nominee.localcluster.supervisor.directory import StateDirectory, write_atomically
from nominee.localcluster.supervisor.model.spec import ClusterSpec
from nominee.machinery.api import kinds
from nominee.machinery.client.credentials import NoCredential
from nominee.machinery.process.serving_port.serving_client import HttpError, ServingPort, request
from nominee.machinery.process.signals import termination_signals
from nominee.machinery.runtime.clock import SystemClock
from nominee.machinery.wire.codec import to_json
from nominee.machinery.wire.files.manifests import dump_yaml
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from nominee.lab.scenario.observing.world import World
    from nominee.machinery.api.kinds import AnyKind

_LOOK_SECONDS: Final = 0.3
_LAST_LOOK_SECONDS_MAX: Final = 2.0
_ANSWER_SECONDS_MAX: Final = 5.0
_CONNECT_SECONDS_MAX: Final = 10.0
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_NOT_WATCHED = (kinds.EVENT, kinds.EVENTS_EVENT, kinds.LEASE, kinds.CUSTOM_RESOURCE_DEFINITION)
_RECORDED = tuple(
    kind
    for kind in kinds.KINDS
    if kind not in _NOT_WATCHED and not kind.read_only and not kind.gate and kind not in kinds.STORED_AS
)
Write = Callable[[dict[str, str]], None]
"""Writes the recording; receives the phases of the pods by namespace/name."""


def run_recording(directory: Path, name: str, file: Path | None) -> None:
    """Record until Ctrl-C, or until the cluster has ended."""
    if not _NAME.fullmatch(name):
        raise click.UsageError(f"--name: {name!r} is not lower-case letters, digits, - and .")
    if file is not None:
        _check_writable(file)
    ask_supervisor(directory, "status")
    plan = read_plan(directory)
    recorder = Recorder()

    def write(phases: dict[str, str]) -> None:
        _write(_text(recorder, name, plan, phases), file, len(recorder.steps))

    try:
        anyio.run(_record, directory, recorder, write)
    except (TimeoutError, NoCredential) as error:
        raise click.ClickException(str(error)) from None


def _check_writable(file: Path) -> None:
    """Check that a file can be written when the recording ends. Raises: click.UsageError."""
    folder = file.absolute().parent
    if not folder.is_dir():
        raise click.UsageError(f"-f: there is no directory {folder}")
    if not os.access(folder, os.W_OK | os.X_OK) or (file.exists() and not os.access(file, os.W_OK)):
        raise click.UsageError(f"-f: {file} cannot be written")


def _text(recorder: Recorder, name: str, plan: ClusterSpec | None, phases: dict[str, str]) -> str:
    cluster: dict[str, Json] = {}
    try:
        cluster = cluster_of(plan) if plan is not None else {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        click.echo(f"warning: spec.cluster is left out: {error}", err=True)
    if recorder.dropped:
        text = f"{recorder.dropped} steps or existing objects are left out"
        click.echo(f"warning: {text}; at most {STEPS_MAX} are recorded", err=True)
    return dump_yaml(recorder.document(name, cluster, phases), sort_keys=False, width=110)


def _write(text: str, file: Path | None, steps: int) -> None:
    """Write the scenario to the file, or to standard output without one or if the file cannot be written.

    Raises:
        click.ClickException: the file cannot be written.
    """
    if file is None:
        click.echo(text, nl=False)
        return
    try:
        write_atomically(file.absolute(), text)
    except OSError as error:
        click.echo(text, nl=False)
        raise click.ClickException(
            f"{file} cannot be written: {error.strerror}; the scenario is on standard output"
        ) from None
    click.echo(f"{steps} steps are in {file}", err=True)


async def _record(directory: Path, recorder: Recorder, write: Write) -> None:
    """Record until SIGINT, SIGTERM or SIGHUP, or until the cluster has ended; then write.

    Further signals do not interrupt the writing.
    """
    # 100 ms that --help and completion would pay.
    from nominee.lab.scenario.observing.world import World
    from nominee.machinery.client.api_client import connect

    def say(steps: Sequence[Mapping[str, Json]]) -> None:
        for step in steps:
            click.echo(f"  {described(step)}", err=True)

    def changed(_kind: AnyKind, old: Message | None, new: Message | None) -> None:
        documents = [to_json(each) if each is not None else None for each in (old, new)]
        say(recorder.on_object(documents[0], documents[1]))

    async def look() -> bool:
        views = await anyio.to_thread.run_sync(_views, directory, abandon_on_cancel=True)
        say(recorder.on_processes(views or ()))
        say(recorder.on_links(await anyio.to_thread.run_sync(states, directory, abandon_on_cancel=True)))
        return views is not None

    async with await connect(
        directory, user_agent="nominee-scenario", limit_seconds=_CONNECT_SECONDS_MAX
    ) as client:
        world = World(client, SystemClock(), _RECORDED)
        with anyio.open_signal_receiver(signal.SIGINT, *termination_signals()) as signals:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_at_signal, signals, tasks.cancel_scope)
                await world.open(tasks)
                for kind in _RECORDED:
                    for message in world.messages(kind):
                        recorder.on_existing(to_json(message))
                click.echo("recording; Ctrl-C ends it", err=True)
                with world.listening(changed):
                    while True:
                        if not await look():
                            break
                        await anyio.sleep(_LOOK_SECONDS)
                click.echo("the cluster has ended", err=True)
                tasks.cancel_scope.cancel()
            with anyio.move_on_after(_LAST_LOOK_SECONDS_MAX):
                await look()
            write(_phases(world))


async def _cancel_at_signal(signals: AsyncIterator[signal.Signals], scope: anyio.CancelScope) -> None:
    async for _ in signals:
        scope.cancel()
        return


def _phases(world: World) -> dict[str, str]:
    """Return the phases of the pods by namespace/name."""
    pods = [to_json(pod) for pod in world.messages(kinds.POD)]
    return {
        f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}": str(
            pod.get("status", {}).get("phase", "")
        )
        for pod in pods
    }


def _views(directory: Path) -> list[ProcessView] | None:
    """Return every process with its armed failpoints and faults; None if the cluster has ended. It blocks."""
    found: list[ProcessView] = []
    try:
        answer = call(StateDirectory(directory), "status", timeout_seconds=_ANSWER_SECONDS_MAX)
    except NotRunningError:
        return None
    except (RefusedError, TimeoutError):
        return found
    if answer["cluster"]["closing"]:  # what is stopped now is stopped by `nominee down`
        return None
    for process in answer["cluster"]["components"]:
        failpoints: Json = []
        faults: Json = {"rules": []}
        if process["state"] == "ready" and process.get("http") and process["component"] != "etcd":
            port = ServingPort.of(str(process["http"]), directory)
            failpoints = _json(port, "/failpoints") or []
            faults = _json(port, "/faults") or faults
        found.append(
            ProcessView(
                name=process["name"],
                state=process["state"],
                pid=process["pid"] or 0,
                last_exit=process.get("lastExit", ""),
                emulated_version=process.get("emulatedVersion", ""),
                gates=process.get("featureGates", {}),
                failpoints={point["name"]: point["action"] for point in failpoints if point["action"]},
                faults=[
                    (rule["to"], rule["method"], rule["kind"], rule["action"]) for rule in faults["rules"]
                ],
            )
        )
    return found


def _json(port: ServingPort, path: str) -> Json:
    try:
        answer = request(port, path, timeout_seconds=_ANSWER_SECONDS_MAX)
        return json.loads(answer.text) if answer.status == 200 else None
    except (HttpError, ValueError):
        return None
