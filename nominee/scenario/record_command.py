"""`nominee scenario record`: write a scenario from what a person does in a running cluster."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import click
import yaml

from machinery.api import kinds
from machinery.features.gates import DEFAULT
from machinery.process.serving_client import HttpError, ServingPort, request
from machinery.runtime.clock import SystemClock
from machinery.wire.codec import to_json
from machinery.wire.scalars import Json
from nominee.commands.common import ask_supervisor, directory_option
from nominee.components import BY_NAME
from nominee.scenario.recorder import ProcessView, Recorder, described
from nominee.supervisor.node_ranges import of_kubelet, option_value
from nominee.verify.settings import read_plan

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from machinery.api.kinds import AnyKind

_LOOK_SECONDS = 0.3
_NOT_WATCHED = (kinds.EVENT, kinds.EVENTS_EVENT, kinds.LEASE, kinds.CUSTOM_RESOURCE_DEFINITION)
_RECORDED = tuple(
    kind
    for kind in kinds.KINDS
    if kind not in _NOT_WATCHED and not kind.read_only and not kind.gate and kind not in kinds.STORED_AS
)


@click.command()
@directory_option
@click.option("--name", default="recorded", show_default=True, help="Name of the scenario.")
@click.option(
    "-f",
    "--filename",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the scenario to this file.  [default: standard output]",
)
def record(directory: Path, name: str, file: Path | None) -> None:
    """Write a scenario from what is done in a running cluster until Ctrl-C.

    Recorded are objects that are created, patched and deleted by others than components, processes that are
    stopped, started and restarted, failpoints and faults. Add expectations to the result: the recording only
    expects the phases of the pods.
    """
    import json

    recorder = Recorder()
    click.echo("recording; Ctrl-C ends it", err=True)
    phases = anyio.run(_record, directory, recorder)
    document = recorder.document(name, _cluster(directory), phases)
    text = yaml.safe_dump(json.loads(json.dumps(document)), sort_keys=False, width=110)
    if file is None:
        click.echo(text, nl=False)
    else:
        file.write_text(text, encoding="utf-8")
        click.echo(f"{len(recorder.steps)} steps are in {file}", err=True)


async def _record(directory: Path, recorder: Recorder) -> dict[str, str]:
    """Record until SIGINT or SIGTERM; return the phases of the pods by namespace/name."""
    from machinery.client.api_client import connect
    from nominee.scenario.world import World

    def say(steps: list[dict[str, Json]]) -> None:
        for step in steps:
            click.echo(f"  {described(step)}", err=True)

    def changed(_kind: AnyKind, old: Message | None, new: Message | None) -> None:
        documents = [to_json(each) if each is not None else None for each in (old, new)]
        say(recorder.on_object(documents[0], documents[1]))

    async with await connect(directory, user_agent="nominee-scenario") as client:
        world = World(client, SystemClock(), _RECORDED)
        async with anyio.create_task_group() as tasks:
            await world.open(tasks)
            with (
                world.listening(changed),
                anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals,
            ):

                async def look() -> None:
                    while True:
                        views = await anyio.to_thread.run_sync(_views, directory)
                        say(recorder.on_processes(views))
                        await anyio.sleep(_LOOK_SECONDS)

                tasks.start_soon(look)
                async for _ in signals:
                    break
            pods = [to_json(pod) for pod in world.messages(kinds.POD)]
            tasks.cancel_scope.cancel()
    return {
        f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}": str(
            pod["status"].get("phase", "")
        )
        for pod in pods
    }


def _views(directory: Path) -> list[ProcessView]:
    """Return every process, with its armed failpoints and faults. It blocks."""
    found = []
    for process in ask_supervisor(directory, "status")["cluster"]["components"]:
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
    import json

    try:
        answer = request(port, path)
        return json.loads(answer.text) if answer.status == 200 else None
    except (HttpError, ValueError):
        return None


def _cluster(directory: Path) -> dict[str, Json]:
    """Return `spec.cluster` for the plan of the running cluster: its options that a scenario has."""
    plan = read_plan(directory)
    if plan is None:
        return {}
    kubelets = [process for process in plan.processes if process.component == "kubelet"]
    present = {process.component for process in plan.processes}
    cluster: dict[str, Json] = {"nodes": sum(of_kubelet(each.argv).count for each in kubelets)}
    if len(kubelets) > 1:
        cluster["kubelets"] = len(kubelets)
    if absent := [name for name in BY_NAME if name not in present]:
        cluster["without"] = absent
    components: dict[str, Mapping[str, Json]] = {}
    for process in plan.processes:
        options: dict[str, Json] = {}
        version = option_value(process.argv, "--emulated-version", str(DEFAULT))
        if version != str(DEFAULT):
            options["emulatedVersion"] = version
        if gates := option_value(process.argv, "--feature-gates", ""):
            pairs = (text.partition("=") for text in gates.split(","))
            options["featureGates"] = {gate: value == "true" for gate, _, value in pairs}
        if options:
            components[process.name] = options
        groups = option_value(process.argv, "--node-groups", "") if process.component == "cloud" else ""
        if groups:
            cluster["nodeGroups"] = yaml.safe_load(Path(groups).read_text(encoding="utf-8"))["nodeGroups"]
    if components:
        cluster["components"] = components
    return cluster
