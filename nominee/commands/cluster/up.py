"""`nominee up`: check the options, write the plan, take the lock and become the supervisor."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from nominee.commands.common import (
    Seconds,
    directory_option,
    echo_json,
    end_as_by_ctrl_c,
    output_option,
    version_options,
)
from nominee.completion.candidates import completing, component_list, failpoint_settings, replica_settings
from nominee.localcluster.components import BY_NAME, COMPONENTS, is_installed
from nominee.localcluster.credentials.identities import certificates, serving_names, tokens
from nominee.localcluster.credentials.pki import Pki
from nominee.localcluster.etcd.server import EtcdError
from nominee.localcluster.etcd.server import find as find_etcd
from nominee.localcluster.new_directory import missing_directories, removed_on_failure
from nominee.localcluster.option_check import RejectedError, check_failpoints, check_options
from nominee.localcluster.output import INTERRUPTED, settle
from nominee.localcluster.plan import (
    AUTHORIZATION_MODE,
    DEFAULT_KUBELETS,
    DEFAULT_NODES,
    ClusterPlan,
    UpOptions,
    build,
)
from nominee.localcluster.supervisor.clock import wait_until
from nominee.localcluster.supervisor.commands.client import NotRunningError, RefusedError, call
from nominee.localcluster.supervisor.directory import (
    InUseError,
    JsonObject,
    StateDirectory,
    UnsupervisedError,
    acquire_lock,
    clean_stale,
    write_atomically,
)
from nominee.localcluster.supervisor.model.node_ranges import NodeRange, option_value, without
from nominee.localcluster.supervisor.model.spec import FIRST_SECONDS_MAX, ClusterSpec
from nominee.localcluster.supervisor.report import Printer, ready_lines, shell_words
from nominee.localcluster.up_options.config_file import Document, UpArguments, document_of, read_config
from nominee.localcluster.up_options.kept_options import KeptOptions
from nominee.localcluster.up_options.options import (
    ALL,
    OptionError,
    parse_assignments,
    parse_components,
    parse_gates,
    parse_replicas,
    parse_versions,
)
from nominee.machinery.process import file_lock
from nominee.machinery.runtime.clock import SystemClock

_FOLLOW_SECONDS = 0.2


@click.command()
@directory_option
@click.option("--nodes", type=int, default=None, help=f"Number of nodes.  [default: {DEFAULT_NODES}]")
@click.option(
    "--kubelets",
    type=int,
    default=None,
    help=f"Number of kubelet processes that share the nodes.  [default: {DEFAULT_KUBELETS}]",
)
@click.option(
    "--components",
    metavar="LIST",
    shell_complete=completing(component_list),
    help="Components to start, separated by commas; default: all that are installed.",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A YAML file with these options (see docs/configuration.md).",
)
@version_options
@click.option(
    "--replicas",
    multiple=True,
    metavar="COMPONENT=N,...",
    shell_complete=completing(replica_settings),
    help="Run several etcd members, API servers, schedulers or autoscalers (with leader election).",
)
@click.option(
    "--scheduler-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A KubeSchedulerConfiguration for the scheduler.",
)
@click.option(
    "--node-groups",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Node groups of the built-in cloud (YAML).",
)
@click.option(
    "--failpoints",
    multiple=True,
    metavar="COMPONENT=NAME=ACTION",
    shell_complete=completing(failpoint_settings),
    help="Arm a failpoint at the component's first start.",
)
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="COMPONENT=--option=value",
    help="Pass an option to a component.",
)
@click.option(
    "--etcd-servers", default=None, metavar="URLS", help="Use a running etcd instead of starting one."
)
@click.option(
    "--insecure/--secure",
    default=None,
    help="Without TLS, every client an administrator; or with credentials in D/pki.  [default: secure]",
)
@click.option(
    "--authorization-mode",
    default=None,
    metavar="MODE,...",
    help=f"Authorizers of the API server.  [default: {AUTHORIZATION_MODE}]",
)
@click.option(
    "--restart",
    type=click.Choice(["always", "never"]),
    default=None,
    help="Whether to restart a component that died.  [default: always]",
)
@click.option(
    "--timeout", type=Seconds(), default=None, help="Seconds until the cluster must be ready.  [default: 60]"
)
@click.option(
    "--history/--no-history",
    "history",
    default=None,
    help="Record the whole history of the objects in D/history.gz, for `nominee verify` and "
    "`nominee history`. API servers then log each write.",
)
@click.option(
    "--dashboard/--no-dashboard",
    "dashboard",
    default=None,
    help="Serve the dashboard with the cluster, and print its URL (see `nominee dashboard`).",
)
@click.option(
    "--from",
    "sources",
    multiple=True,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Begin with the state of another cluster, at its version (see `nominee import`). Repeatable.",
)
@click.option(
    "--remember/--no-remember",
    default=True,
    help="Continue with the options of the directory's last start, and remember these.",
)
@click.option("--detach", is_flag=True, help="Return when the cluster is ready; `nominee down` stops it.")
@click.option(
    "--wait/--no-wait", default=True, help="With --detach: return when the cluster is ready, or at once."
)
@click.option("--dry-run", is_flag=True, help="Print the commands of the processes, and start none.")
@output_option("text", "json")
def up(
    directory: Path, remember: bool, detach: bool, wait: bool, dry_run: bool, output: str, **given: Any
) -> None:
    """Start a cluster; it runs until Ctrl-C.

    A component that dies is started again after a delay that grows. All files are in one directory, D:
    D/cluster.json describes the processes, D/logs has their logs, D/kubeconfig is for kubectl.

    A directory that was used before keeps its objects, and continues with the options that it was started
    with; an option that is given again overrides them. Nodes beyond --nodes are removed.
    """
    lines: list[str] = []
    try:
        before = KeptOptions.read(directory) if remember else KeptOptions()
        given["json_output"] = output == "json" and not detach
        options, kept, lines = _options(directory, before, given)
        plan = build(options)
        check_failpoints(options)
    except OptionError as error:
        raise click.UsageError("\n".join([str(error), *lines])) from None
    new_warnings = [each for each in _etcd_warnings(plan) if each not in kept.warnings]
    lines += [f"warning: {each}" for each in (*plan.warnings, *new_warnings)]
    if dry_run:
        _report(lines)
        _print_plan(plan, output)
        return
    state = StateDirectory(directory)
    made = missing_directories(directory)
    lock, plan = _claim(state, plan)
    with removed_on_failure(made):
        _report(lines)
        if remember and new_warnings:  # also of a start that is rejected, whose options are not kept
            replace(before, warnings=(*before.warnings, *new_warnings)).write(directory)
        _make_credentials(directory, plan)
        try:
            check_options(options, plan)
        except RejectedError as error:
            raise click.ClickException(str(error)) from None
    write_atomically(state.plan, plan.spec.to_json())
    if remember:
        replace(kept, warnings=(*kept.warnings, *new_warnings)).write(directory)
    command = [
        sys.executable,
        "-P",
        "-m",
        "nominee.localcluster.supervisor",
        f"--dir={directory}",
        f"--lock-fd={lock}",
    ]
    if detach:
        _detach(command, lock, state, plan, wait=wait, output=output)
        return
    settle()
    os.set_inheritable(lock, True)
    os.execv(sys.executable, command)  # the supervisor keeps the pid and needs less memory


def _report(lines: Iterable[str]) -> None:
    """Print lines on standard error. The cluster starts even if they cannot be written."""
    for line in lines:
        Printer(sys.stderr)(line)


def _etcd_warnings(plan: ClusterPlan) -> list[str]:
    """Return warnings about the etcd that will run; if there is no etcd, its process reports that."""
    warnings = []
    for process in plan.spec.processes:
        if process.component == "etcd":
            with suppress(EtcdError):
                warnings.append(find_etcd(option_value(process.argv, "--etcd-binary", "")).warning)
    return list(dict.fromkeys(filter(None, warnings)))


def _make_credentials(directory: Path, plan: ClusterPlan) -> None:
    """Create the certificates and tokens in D/pki, if the API server is secure."""
    if not plan.secure:
        return

    clock = SystemClock()
    try:
        Pki(directory / "pki").ensure(
            certificates(),
            tokens(plan.spec.processes),
            now=datetime.fromtimestamp(clock.now(), UTC),
            names=serving_names(plan.spec.processes),
        )
    except (OSError, ValueError) as error:
        raise click.ClickException(
            f"the credentials in {directory / 'pki'} cannot be created: {error}; "
            "remove that directory, or choose another --dir"
        ) from None


def _options(
    directory: Path, before: KeptOptions, given: UpArguments
) -> tuple[UpOptions, KeptOptions, list[str]]:
    """Return the options, those that the directory keeps, and a line about those that it had.

    Options of the command line override those of --config, and both override those of the directory.
    """
    config = document_of(read_config(given["config"])) if given["config"] is not None else None
    chosen = _chosen(given)
    lines = _continue_others(
        given["sources"], chosen, {**(before.config if config is None else config), **before.command_line}
    )
    continued = before.continued(config, document_of(chosen))
    kept = before.override(config, document_of(chosen))
    base = kept.settings(directory, chosen)
    if "components" not in base:
        base["components"] = _default_components(base)
    else:
        missing = [name for name in base["components"] if not is_installed(BY_NAME[name])]
        if missing:
            raise OptionError("--components", f"{missing[0]} is not installed")
    if continued:
        lines.append(f"options of the last start in {directory} continue: {continued}")
    imports = tuple(path.absolute() for path in given["sources"])
    options = UpOptions(directory=directory, json_output=given["json_output"], imports=imports, **base)
    return options, kept, lines


def _continue_others(sources: Sequence[Path], chosen: UpArguments, kept: Document) -> list[str]:
    """Add the options with which the state of another cluster continues; return lines about them."""
    if not sources:
        return []
    # 100 ms that other starts would pay.
    from nominee.importing.check import check_files
    from nominee.importing.sources import SourceError, kubelet_version

    try:
        check_files(sources)
        version = kubelet_version(sources)
    except SourceError as error:
        raise OptionError("--from", str(error)) from None
    chosen["adopts_nodes"] = True
    if "nodes" not in kept:
        chosen.setdefault("nodes", 0)
    if version is None or "versions" in chosen or "emulatedVersion" in kept:
        return []
    chosen["versions"] = {ALL: version}
    return [f"emulated version: {version}, which most of the nodes' kubelets have"]


def _chosen(given: UpArguments) -> UpArguments:
    """Return the options that the command line has, as arguments of `UpOptions`."""
    components = given["components"]
    chosen = {
        "components": parse_components("--components", components) if components is not None else None,
        "nodes": given["nodes"],
        "kubelets": given["kubelets"],
        "scheduler_config": given["scheduler_config"] and given["scheduler_config"].absolute(),
        "node_groups": given["node_groups"] and given["node_groups"].absolute(),
        "etcd_servers": given["etcd_servers"],
        "ready_seconds_max": given["timeout"],
        "secure": None if given["insecure"] is None else not given["insecure"],
        "authorization_mode": given["authorization_mode"],
        "records_history": given["history"],
        "has_dashboard": given["dashboard"],
        "restart": None if given["restart"] is None else given["restart"] == "always",
        "replicas": parse_replicas("--replicas", given["replicas"]) if given["replicas"] else None,
    }
    if versions := given["emulated_version"]:
        chosen["versions"] = parse_versions("--emulated-version", versions)
    if gates := given["feature_gates"]:
        chosen["gates"] = parse_gates("--feature-gates", gates)
    if texts := given["failpoints"]:
        chosen["failpoints"] = parse_assignments(
            "--failpoints", texts, "scheduler=scheduler.bind.before=crash"
        )
    if texts := given["arguments"]:
        chosen["arguments"] = parse_assignments("--arg", filter(None, texts), "kubelet=--start-delay=1s")
    return {name: value for name, value in chosen.items() if value is not None}


def _default_components(base: UpArguments) -> tuple[str, ...]:
    """Return all installed components; kubelets only if there are nodes."""
    found = [component.name for component in COMPONENTS if is_installed(component)]
    if base.get("etcd_servers"):
        found.remove("etcd")
    have = set(found) | ({"etcd"} if base.get("etcd_servers") else set())
    return tuple(name for name in found if have.issuperset(BY_NAME[name].needs))


def _print_plan(plan: ClusterPlan, output: str) -> None:
    if output == "json":
        echo_json(
            {
                "directory": str(plan.spec.directory),
                "warnings": list(plan.warnings),
                "environment": plan.spec.environment,
                "components": [
                    {"name": p.name, "component": p.component, "command": [*p.argv, *p.first_start]}
                    for p in plan.spec.processes
                ],
            }
        )
        return
    for process in plan.spec.processes:
        click.echo(shell_words([*process.argv, *process.first_start]))


def _claim(state: StateDirectory, plan: ClusterPlan) -> tuple[int, ClusterPlan]:
    """Take the lock and remove the processes and files that a killed cluster left.

    Returns the lock's descriptor, and the plan with the nodes of earlier kubelets of the directory.
    """
    hint = plan.spec.hint
    try:
        lock = acquire_lock(state)
        spec = replace(plan.spec, earlier_nodes=_earlier_nodes(state))
        stale = clean_stale(state, {component.name: component.module for component in COMPONENTS})
    except UnsupervisedError as error:
        raise click.ClickException(
            f"{error}; end them first (Ctrl-C where `honcho start` runs) or choose another --dir"
        ) from None
    except InUseError as error:
        raise click.ClickException(
            f"{error}; see it with `nominee status{hint}`, end it with `nominee down{hint}`, "
            "or choose another directory with --dir"
        ) from None
    except OSError as error:
        raise click.ClickException(
            f"cannot use {state.path}: {error.strerror}; choose another --dir"
        ) from None
    if stale:
        _report([f"cleaned up after a cluster that was killed here ({', '.join(stale)})"])
    if spec.surplus_nodes:
        surplus = ", ".join(map(str, spec.surplus_nodes))
        _report([f"nodes of an earlier cluster in this directory are removed: {surplus}"])
    return lock, replace(plan, spec=spec)


def _earlier_nodes(state: StateDirectory) -> tuple[NodeRange, ...]:
    """Return the nodes of the last cluster in this directory, and earlier nodes that it has not removed."""
    try:
        last = ClusterSpec.from_json(state.plan.read_text(encoding="utf-8"))
        return without((*last.earlier_nodes, *last.nodes), ())
    except (OSError, ValueError, KeyError, TypeError):
        return ()  # a new directory, or a plan that another version wrote


def _detach(
    command: Sequence[str], lock: int, state: StateDirectory, plan: ClusterPlan, *, wait: bool, output: str
) -> None:
    """Start the supervisor in a session of its own, and wait until all components are ready."""
    end_as_by_ctrl_c()
    state.log_file("supervisor").unlink(missing_ok=True)
    log = state.open_log("supervisor")
    supervisor = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        pass_fds=[lock],
    )
    try:
        file_lock.name_holder(lock, supervisor.pid)
        os.close(lock)
        os.close(log)
        # With a first program the supervisor has much to report, and then the same lines as this one.
        follows = bool(plan.spec.first) and output != "json"
        with _following(state.log_file("supervisor")) if follows else nullcontext():
            cluster = _wait(supervisor, state, plan, ready=wait)
    except KeyboardInterrupt:
        supervisor.terminate()  # it may not listen yet, and then "down" would not reach it
        supervisor.wait()
        click.echo("\ninterrupted; the cluster is stopped", err=True)
        raise SystemExit(INTERRUPTED) from None
    if output == "json":
        echo_json(cluster)
        return
    if not follows:
        for line in ready_lines(cluster, plan.spec.hint):
            click.echo(line)


@contextmanager
def _following(file: Path) -> Iterator[None]:
    """Print the lines of a log while they are written, until the block ends."""
    ended = threading.Event()

    def follow() -> None:
        with file.open(encoding="utf-8") as log:
            while True:
                is_last = ended.wait(_FOLLOW_SECONDS)
                for text in log:
                    click.echo(text, nl=False)
                if is_last:
                    return

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _wait(
    supervisor: subprocess.Popen[bytes], state: StateDirectory, plan: ClusterPlan, *, ready: bool
) -> JsonObject:
    socket = state.run / "supervisor.sock"
    wait_until(lambda: socket.exists() or supervisor.poll() is not None, 10.0)
    limit = plan.spec.ready_seconds_max + 30.0 + (FIRST_SECONDS_MAX if plan.spec.first else 0.0)
    try:
        answer = call(state, "wait" if ready else "status", timeout_seconds=limit)
    except RefusedError as error:
        supervisor.wait(timeout=60.0)
        raise click.ClickException(str(error).removeprefix("error: ")) from None
    except (NotRunningError, TimeoutError) as error:
        tail = "\n".join(state.log_tail("supervisor", lines=20))
        raise click.ClickException(f"{error}; the supervisor's log ends:\n{tail}") from None
    cluster: JsonObject = answer["cluster"]
    return cluster
