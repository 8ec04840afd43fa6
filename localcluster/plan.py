"""The processes of a cluster and their command lines: options in, a `ClusterSpec` out. No I/O."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nominee.localcluster import version_skew
from nominee.localcluster.components import BY_NAME, Component
from nominee.localcluster.credentials.pki import Pki
from nominee.localcluster.supervisor.clock import SECONDS_MAX
from nominee.localcluster.supervisor.model.core import Policy
from nominee.localcluster.supervisor.model.node_ranges import of_kubelet
from nominee.localcluster.supervisor.model.spec import ClusterSpec, ProcessSpec
from nominee.localcluster.up_options.options import ALL, OptionError, merge_gates, setting
from nominee.machinery.client.etcd_endpoints import endpoints
from nominee.machinery.features import gates as versions

DEFAULT_DIRECTORY = Path(".nominee")
DEFAULT_NODES = 3
DEFAULT_KUBELETS = 1
AUTHORIZATION_MODE = "Node,RBAC"
_NEED_CONTROLLERS = ("TaintNodesByCondition", "ServiceAccount")
"""Admission plugins that need controllers: without them no pod could be created, or none could run."""
_PROGRAM_STAGE = 1
ACTING = ("autoscaler", "scheduler", "controllers", "kubelet")
"""The components that act on objects: none of them runs while another cluster's are imported."""
RECORDER = "history"
"""The process of `nominee up --history`."""
DASHBOARD = "dashboard"
"""The process of `nominee up --dashboard`."""
NODES_MAX = 20_000
KUBELETS_MAX = 100

_PROGRAM_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

# Every process of a small cluster has one busy thread; numeric libraries would keep a stack and a buffer per
# core, and malloc an arena per thread.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
    "PYTHONUNBUFFERED": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """The options of `nominee up`. Mappings have a component, a process or options.ALL as key.

    `stopped` components do not run until a command starts them. Neither do `programs`, the command lines of
    other programs by name; `{kubeconfig}` and `{dir}` in them are substituted.
    """

    directory: Path
    components: tuple[str, ...]
    nodes: int = DEFAULT_NODES
    kubelets: int = DEFAULT_KUBELETS
    replicas: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    gates: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    failpoints: Mapping[str, Sequence[str]] = field(default_factory=dict)
    arguments: Mapping[str, Sequence[str]] = field(default_factory=dict)
    scheduler_config: Path | None = None
    node_groups: Path | None = None
    records_history: bool = False
    has_dashboard: bool = False
    adopts_nodes: bool = False
    imports: tuple[Path, ...] = ()
    stopped: tuple[str, ...] = ()
    programs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    etcd_servers: str = ""
    secure: bool = True
    authorization_mode: str = ""
    restart: bool = True
    ready_seconds_max: float = 60.0
    json_output: bool = False


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The processes, and warnings for the user."""

    spec: ClusterSpec
    warnings: tuple[str, ...]
    # whether the API server or etcd needs the credentials in D/pki
    secure: bool = False


def build(options: UpOptions) -> ClusterPlan:
    """Return the plan.

    Raises:
        OptionError: options contradict one another.
    """
    _check(options)
    processes, emulated = [], {}
    warnings: list[str] = []
    for component, name, own in _processes(options):
        if component.versioned:
            emulated[name] = (component.name, _version(component, name, options))
            warnings += _check_gates(component, name, options)
        processes.append(
            ProcessSpec(
                name=name,
                component=component.name,
                argv=(
                    *_command(component, name, options.directory),
                    *own,
                    *_common(component, name, options),
                ),
                stop_stage=component.stop_stage,
                first_start=_first_start(component, name, options),
                ready_path=component.ready_path,
                starts_with_cluster=component.name not in options.stopped and name not in options.stopped,
            )
        )
    processes += [_program(name, command, options.directory) for name, command in options.programs.items()]
    if options.records_history:
        processes.append(_observer(RECORDER, "nominee.lab.history", options.directory))
    if options.has_dashboard:
        processes.append(_observer(DASHBOARD, "nominee.dashboard", options.directory, "/healthz"))
    spec = ClusterSpec(
        directory=options.directory,
        processes=tuple(processes),
        environment=dict(ENVIRONMENT),
        policy=Policy(restart=options.restart),
        ready_seconds_max=options.ready_seconds_max,
        json_output=options.json_output,
        hint=directory_hint(options.directory),
    )
    if options.imports:
        spec = _with_import(spec, options)
    _check_nodes(spec)
    secure = options.secure and bool({"apiserver", "etcd"}.intersection(options.components))
    return ClusterPlan(
        spec, (*warnings, *version_skew.problems(emulated), *_unread(options), *_lacks(options)), secure
    )


def _with_import(spec: ClusterSpec, options: UpOptions) -> ClusterSpec:
    """Add the program of `nominee up --from`; components that act on objects start after it, kubelets first.

    Other controllers than the kubelets' would act on nodes that no kubelet runs yet.
    """
    if "apiserver" not in options.components:
        raise OptionError("--from", "objects are imported into an API server; add it to --components")
    own = [process for process in spec.processes if process.starts_with_cluster]
    kubelets = tuple(process.name for process in own if process.component == "kubelet")
    others = tuple(process.name for process in own if process.component in ACTING[:-1])
    command = (sys.executable, "-P", "-m", "nominee.cli", "import", "--dir", str(options.directory))
    return replace(spec, first=(*command, *map(str, options.imports)), later=(kubelets, others))


def _program(name: str, command: Sequence[str], directory: Path) -> ProcessSpec:
    """Return the process of a program that is not Nominee's."""
    values = {"{kubeconfig}": str(directory / "kubeconfig"), "{dir}": str(directory)}
    argv = []
    for word in command:
        for key, value in values.items():
            word = word.replace(key, value)
        argv.append(word)
    return ProcessSpec(
        name=name,
        component=name,
        argv=tuple(argv),
        stop_stage=_PROGRAM_STAGE,
        ready_path="",
        starts_with_cluster=False,
    )


def _observer(name: str, module: str, directory: Path, ready_path: str = "") -> ProcessSpec:
    """Return a process that reads the history; it stops with the API server, before etcd."""
    argv = (sys.executable, "-P", "-m", module, "--dir", str(directory))
    stage = BY_NAME["apiserver"].stop_stage
    return ProcessSpec(name=name, component=name, argv=argv, stop_stage=stage, ready_path=ready_path)


def directory_hint(directory: Path) -> str:
    """Return the `--dir` option that another command needs to find this cluster, or ""."""
    return "" if directory == DEFAULT_DIRECTORY.absolute() else f" --dir {directory}"


def _processes(options: UpOptions) -> Iterator[tuple[Component, str, list[str]]]:
    """Yield component, process name and the component's own options, in the order of starting."""
    for name in options.components:
        component = BY_NAME[name]
        own: list[str] = []
        pki = Pki(options.directory / "pki")
        if name == "etcd" and options.secure:
            own += ["--certificates", str(pki.etcd.path)]
        elif name == "apiserver":
            if options.records_history:
                own.append("--log-level=debug")  # `nominee history` reads there who made a write
            if options.etcd_servers:
                own += ["--etcd-servers", options.etcd_servers]
            elif options.secure:
                own += pki.etcd.client_arguments
            own += _access(options)
            if "controllers" not in options.components:
                own += ["--disable-admission-plugins", ",".join(_NEED_CONTROLLERS)]
        elif name == "controllers" and options.secure and "apiserver" in options.components:
            own += Pki(options.directory / "pki").signing_arguments
        elif name == "scheduler" and options.scheduler_config is not None:
            own += ["--config", str(options.scheduler_config)]
        elif name == "cloud":
            own += pki.cloud_arguments() if options.secure else []
            if options.node_groups is not None:
                own += ["--node-groups", str(options.node_groups)]
        if name != "kubelet":
            yield from _replicas(component, own, options.replicas.get(name, 1))
            continue
        for index, (first, count) in enumerate(_shares(options.nodes, options.kubelets)):
            share = ["--nodes", str(count), "--first-node", str(first)]
            if "cloud" in options.components and index == 0:
                share.append("--cloud")
            if options.adopts_nodes:
                share += adoption(index, options.kubelets)
            yield component, f"kubelet-{index}", share


def adoption(index: int, kubelets: int) -> list[str]:
    """Return the option with which a kubelet process runs its share of the nodes of `nominee import`."""
    return ["--adopt", f"{index}/{kubelets}"]


def _replicas(component: Component, own: list[str], count: int) -> Iterator[tuple[Component, str, list[str]]]:
    """Yield one process with the component's name, or several: `scheduler-0`, `scheduler-1`, ..."""
    if count == 1:
        yield component, component.name, own
        return
    shared = {"etcd": ["--members", str(count)], "apiserver": ["--apiserver-count", str(count)]}
    for index in range(count):
        yield component, f"{component.name}-{index}", [*own, *shared.get(component.name, ["--leader-elect"])]


def _access(options: UpOptions) -> list[str]:
    """Return the API server's options for authentication and authorization, as kubeadm sets them."""
    if not options.secure:
        mode = options.authorization_mode
        return ["--authorization-mode", mode] if mode else []
    return Pki(options.directory / "pki").arguments(options.authorization_mode or AUTHORIZATION_MODE)


def _shares(nodes: int, kubelets: int) -> list[tuple[int, int]]:
    """Return the first node and the number of nodes of each kubelet process, as equal as possible."""
    size, rest = divmod(nodes, kubelets)
    counts = [size + (index < rest) for index in range(kubelets)]
    return [(sum(counts[:index]), count) for index, count in enumerate(counts)]


def _command(component: Component, name: str, directory: Path) -> list[str]:
    # -P: the working directory may have a folder with the component's name.
    command = [sys.executable, "-P", "-m", component.module, "--dir", str(directory)]
    return command if name == "etcd" else [*command, "--name", name]


def _common(component: Component, name: str, options: UpOptions) -> list[str]:
    arguments: list[str] = []
    if component.versioned:
        version = setting(options.versions, component, name)
        if version:
            arguments += ["--emulated-version", version]
        gates = merge_gates(options.gates, component, name)
        if gates:
            text = ",".join(f"{gate}={str(value).lower()}" for gate, value in gates.items())
            arguments += ["--feature-gates", text]
    return arguments + [text for key in _keys(component, name) for text in options.arguments.get(key, ())]


def _first_start(component: Component, name: str, options: UpOptions) -> tuple[str, ...]:
    points = [text for key in _keys(component, name) for text in options.failpoints.get(key, ())]
    return ("--failpoints", ";".join(points)) if points else ()


def _keys(component: Component, name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((component.name, name)))


def _check(options: UpOptions) -> None:
    if not 0 <= options.nodes <= NODES_MAX:
        raise OptionError("--nodes", f"{options.nodes} is not between 0 and {NODES_MAX}")
    if not 1 <= options.kubelets <= KUBELETS_MAX:
        raise OptionError("--kubelets", f"{options.kubelets} is not between 1 and {KUBELETS_MAX}")
    if not 0 < options.ready_seconds_max <= SECONDS_MAX:  # false also for a text that is not a number
        text = f"{options.ready_seconds_max:g} is not a number of seconds up to {SECONDS_MAX}"
        raise OptionError("--timeout", text)
    for name, count in options.replicas.items():
        most = BY_NAME[name].replicas_max
        if not 1 <= count <= most:
            limit = "" if most > 1 else "; only etcd, apiserver, scheduler and autoscaler may have several"
            raise OptionError("--replicas", f"{name}={count}: at most {most}{limit}")
        if name not in options.components:
            raise OptionError("--replicas", f"{name} is not among the components of this cluster")
    try:
        endpoints(options.etcd_servers)
    except ValueError as error:
        raise OptionError("--etcd-servers", str(error)) from None
    if options.etcd_servers and "etcd" in options.components:
        raise OptionError(
            "--etcd-servers", "--components contains etcd; remove it, or leave out --etcd-servers"
        )
    have = set(options.components) | ({"etcd"} if options.etcd_servers else set())
    for name in options.components:
        missing = [need for need in BY_NAME[name].needs if need not in have]
        if missing:
            how = " (or give --etcd-servers)" if missing[0] == "etcd" else ""
            raise OptionError("--components", f"{name} needs {missing[0]}; add it{how}")
    for name in options.programs:
        if name in (*options.components, RECORDER, DASHBOARD) or not _PROGRAM_NAME.fullmatch(name):
            raise OptionError("--config", f"programs: {name!r} is a component of this cluster, or no name")
    running = {name for _, name, _ in _processes(options)}
    for name in options.stopped:
        if name not in running and name not in options.components:
            raise OptionError("--config", f"stopped: {name} is not among the processes of this cluster")
    for option, keys in (
        ("--emulated-version", options.versions),
        ("--feature-gates", options.gates),
        ("--failpoints", options.failpoints),
        ("--arg", options.arguments),
    ):
        for key in keys:
            if key and key not in running and key not in options.components:
                raise OptionError(option, f"{key} is not among the processes of this cluster")
    if options.scheduler_config is not None and "scheduler" not in options.components:
        raise OptionError(
            "--scheduler-config", "the configuration needs the scheduler; add it to --components"
        )
    if options.node_groups is not None and "cloud" not in options.components:
        raise OptionError("--node-groups", "node groups need the cloud; add it to --components")


def _check_nodes(spec: ClusterSpec) -> None:
    """Check the number of nodes in --arg.

    Raises:
        OptionError: it is not possible.
    """
    for process in spec.processes:
        if process.component == "kubelet":
            try:
                nodes = of_kubelet(process.argv)
            except ValueError as error:
                raise OptionError("--arg", f"{process.name}: {error}") from None
            if not (0 <= nodes.count <= NODES_MAX and nodes.first >= 0):
                raise OptionError("--arg", f"{process.name}: {nodes} are not up to {NODES_MAX} nodes")


def _version(component: Component, name: str, options: UpOptions) -> versions.Version:
    text = setting(options.versions, component, name)
    return versions.parse_emulated_version(text) if text else versions.DEFAULT


def _check_gates(component: Component, name: str, options: UpOptions) -> Sequence[str]:
    """Check gates as the process itself would, before any process starts.

    Raises:
        OptionError: a gate does not exist or cannot be set.
    """
    gates = merge_gates(options.gates, component, name)
    try:
        return versions.Gates(component.name, _version(component, name, options), gates).warnings
    except versions.GateError as error:
        raise OptionError("--feature-gates", f"{name}: {error}") from None


def _unread(options: UpOptions) -> list[str]:
    """Return the gates for all components that no component of this cluster reads."""
    names = [name for name in options.components if BY_NAME[name].versioned]
    problems = []
    for gate in options.gates.get(ALL, {}):
        problem = [versions.no_effect(name, gate) for name in names]
        if names and all(problem):
            known = versions.gates()[versions.aliases().get(gate, gate)]
            where = f"{', '.join(sorted(known.components))} would read it" if known.components else ""
            problems.append(f"feature gate {gate} has no effect here: {where or 'no component reads it'}")
    return problems


def _lacks(options: UpOptions) -> list[str]:
    if "controllers" in options.components or "apiserver" not in options.components:
        return []
    return [
        "without controllers nothing clears a new node's not-ready taint or creates the service account "
        f"default, so the admission plugins {' and '.join(_NEED_CONTROLLERS)} are disabled"
    ]
