"""`nominee import`: continue the state of another cluster in this one."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nominee.commands.common import (
    ask_supervisor,
    directory_option,
    echo_json,
    kubeconfig_options,
    output_option,
    read_live_state,
)

if TYPE_CHECKING:
    from nominee.importing.live import LiveState
    from nominee.importing.report import Report
    from nominee.importing.sources import Sources
    from nominee.localcluster.supervisor.directory import JsonObject
    from nominee.machinery.client.api_client import Client

_START_SECONDS_MAX = 300.0


@click.command("import")
@click.argument("files", nargs=-1, type=click.Path(allow_dash=True))
@kubeconfig_options
@directory_option
@click.option("--strict", is_flag=True, help="Exit with status 1 if anything did not come.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Import into a cluster that exists for this only, and print what would not come.",
)
@click.option("--with-secrets", is_flag=True, help="Import the values of Secrets too, not their keys only.")
@output_option("text", "json")
def import_state(
    files: tuple[str, ...],
    kubeconfig: Path | None,
    context: str | None,
    directory: Path,
    strict: bool,
    dry_run: bool,
    with_secrets: bool,
    output: str,
) -> None:
    """Import the state of another cluster.

    FILES have its objects, as `kubectl get ... -A -o json` (or yaml) prints them. JSON is read much faster
    than YAML. The controllers need ControllerRevisions and ReplicaSets, too: without those of a DaemonSet,
    StatefulSet or Deployment they replace its pods.

    Names, labels, annotations, owners, creation times and statuses stay; uids and resourceVersions are new.
    The kubelets run the nodes from then on, and the pods on them go on running. What cannot come is listed
    at the end, with reasons.

    While the objects are written, the scheduler, the controllers, the autoscaler and the kubelets are
    stopped.
    """
    if bool(files) == bool(kubeconfig) or (context and not kubeconfig):
        raise click.UsageError("give FILES (- is stdin), or --kubeconfig and possibly --context")
    sources = _read(files) if kubeconfig is None else read_live_state(kubeconfig, context)
    if dry_run:
        report = _dry_run(_server_options(directory, files), sources, secrets=with_secrets)
    else:
        with _halted(directory):
            report = _import(directory, sources, secrets=with_secrets)
    if output == "json":
        echo_json(report.to_json())
    else:
        for line in report.lines():
            click.echo(line)
    if report.is_empty:
        raise click.ClickException("nothing could be imported")
    if strict and not report.is_complete:
        raise SystemExit(1)


def _read(files: tuple[str, ...]) -> Sources:
    """Return the objects of the files. Raises: click.ClickException: a file cannot be read, or has none."""
    # 100 ms that --help and completion would pay.
    from nominee.importing.sources import SourceError, Sources

    try:
        return Sources(files)
    except SourceError as error:
        raise click.ClickException(str(error)) from None


def _import(directory: Path, sources: Sources | LiveState, *, secrets: bool, dry_run: bool = False) -> Report:
    # 100 ms that --help and completion would pay.
    from nominee.importing.importer import Importer
    from nominee.importing.report import Report
    from nominee.session import converse

    report = Report(dry_run)

    async def work(client: Client) -> None:
        rng = random.SystemRandom()  # uids that no earlier import has given
        importer = Importer(
            client, rng, lambda line: click.echo(line, err=True), secrets, sources.where, report
        )
        await importer.run(sources.documents)

    try:
        converse(directory, work)
    except click.ClickException:
        for line in report.lines():  # the cluster has these objects
            click.echo(line, err=True)
        raise
    return report


def _dry_run(options: Sequence[str], sources: Sources | LiveState, *, secrets: bool) -> Report:
    """Import into an API server of its own, with these options of `nominee up`."""
    # 150 ms that --help and completion would pay.
    from nominee.localcluster.own_cluster import ClusterStartError, cluster

    with tempfile.TemporaryDirectory(prefix="nominee-import-") as temporary:
        try:
            with cluster(Path(temporary), options, "etcd,apiserver"):
                return _import(Path(temporary), sources, secrets=secrets, dry_run=True)
        except ClusterStartError as error:
            raise click.ClickException(str(error)) from None


def _server_options(directory: Path, files: Sequence[str]) -> list[str]:
    """Return version and gates of the directory's API server, or those that `up --from` would give it."""
    # 100 ms that --help and completion would pay.
    from nominee.importing.sources import kubelet_version
    from nominee.localcluster.supervisor.directory import StateDirectory

    for document in StateDirectory(directory).live_run_files().values():
        if document.get("component") == "apiserver":
            gates = ",".join(f"{name}={str(on).lower()}" for name, on in document["featureGates"].items())
            options = ["--emulated-version", f"apiserver={document['emulatedVersion']}"]
            return [*options, *(("--feature-gates", f"apiserver:{gates}") if gates else ())]
    version = kubelet_version([Path(file) for file in files if file != "-"])
    return ["--emulated-version", version] if version is not None else []


@contextmanager
def _halted(directory: Path) -> Iterator[None]:
    """Stop the components that act on objects until the block ends; then the kubelets also adopt nodes.

    Raises:
        click.ClickException: such a process runs without a supervisor.
    """
    # 60 ms that --help and completion would pay.
    from nominee.commands.cluster.lifecycle import ask, reassign
    from nominee.localcluster.plan import ACTING, adoption
    from nominee.localcluster.supervisor.directory import StateDirectory
    from nominee.localcluster.up_options.kept_options import KeptOptions

    running = StateDirectory(directory).live_run_files()
    # The kubelets that start later adopt nodes, too, also if the import ends early.
    KeptOptions.read(directory).override(None, {"adopt": True}).write(directory)
    acting = [name for name, document in running.items() if document.get("component") in ACTING]
    if not acting:
        yield
        return
    components = ask_supervisor(directory, "status")["cluster"]["components"]
    stopped = [each for name in ACTING for each in components if _stops(each, name)]
    kubelets = [each["name"] for each in components if each["component"] == "kubelet"]
    try:
        for index, name in enumerate(kubelets):
            arguments = adoption(index, len(kubelets))
            ask_supervisor(directory, "extend", component=name, arguments=arguments)
            reassign(StateDirectory(directory), name)
        for each in stopped:
            ask_supervisor(directory, "stop", component=each["name"])
        yield
    except BaseException:
        names = ", ".join(each["name"] for each in stopped)
        text = "warning: the import did not end. Nothing acts on half of a state, so these stay down:"
        click.echo(
            f"{text} {names}. Import into an empty --dir, or start them with `nominee start`.", err=True
        )
        raise
    for each in reversed(stopped):
        name = each["name"]
        try:
            ask(directory, "start", name, _START_SECONDS_MAX)
        except click.ClickException as error:  # the others start
            click.echo(f"warning: {name} does not start: {error.format_message()}", err=True)


def _stops(process: JsonObject, component: str) -> bool:
    states = ("ready", "starting", "backoff", "paused")
    return process["component"] == component and process["state"] in states
