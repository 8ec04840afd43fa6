"""Candidates for a word: functions from the incomplete word to whole words."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

from nominee.localcluster.components import BY_NAME, COMPONENTS, UnknownComponentError, find_process
from nominee.localcluster.supervisor.directory import StateDirectory, read_json

# The functions import gates (50 ms) and kinds (130 ms): every command imports this module for its options.

ACTIONS = ("off", "crash", "error", "pause")
"""Actions of a failpoint that need no quotes (`nominee.machinery.runtime.failpoints` has all)."""

FAULT_ACTIONS = ("off", "cut", "cut-response", "drop-request", "drop-response", "hold", "merge", "relist")
"""Actions of a fault without an argument (`nominee.machinery.runtime.faults.call_faults` has all)."""
FAULT_METHODS = {
    "apiserver": (
        "Bind", "Create", "Delete", "Evict", "Get", "List", "Patch", "ServerInfo", "Update", "Watch",
    ),
    "cloud": (
        "NodeGroupDecreaseTargetSize", "NodeGroupDeleteNodes", "NodeGroupForNode", "NodeGroupIncreaseSize",
        "NodeGroupNodes", "NodeGroupTargetSize", "NodeGroupTemplateNodeInfo", "NodeGroups", "Refresh",
    ),
    "etcd": ("Compaction", "LeaseGrant", "Range", "Txn", "Watch"),
}  # fmt: skip
"""The methods that components call, as their clients declare them."""

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def completing(words: Callable[[str], Iterable[str]]) -> Complete:
    """Return click's `shell_complete` callback for a function that returns candidates."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
        return [word for word in words(incomplete) if word.startswith(incomplete)]

    return complete


def process_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the components, and the processes of the cluster in --dir if it exists."""
    names = [component.name for component in COMPONENTS]
    directory = context.params.get("directory")
    if directory is not None:
        plan = read_json(StateDirectory(directory).plan) or {}
        names += [str(process.get("name")) for process in plan.get("processes", ())]
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]


def component_list(incomplete: str) -> list[str]:
    """Complete `etcd,apiserver,...`."""
    before, _ = _last_item(incomplete)
    given = before.split(",")
    return [f"{before}{name}" for name in BY_NAME if name not in given]


def replica_settings(incomplete: str) -> list[str]:
    """Complete `scheduler=2,etcd=3`."""
    before, item = _last_item(incomplete)
    name, equals, _ = item.partition("=")
    several = [component for component in COMPONENTS if component.replicas_max > 1]
    if not equals:
        return [f"{before}{component.name}=" for component in several]
    return [
        f"{before}{name}={count}"
        for component in several
        if component.name == name
        for count in range(2, component.replicas_max + 1)
    ]


def versions(incomplete: str) -> list[str]:
    """Complete `1.36`, `scheduler=1.36,...`."""
    from nominee.machinery.features import gates as features

    before, item = _last_item(incomplete)
    known = [f"1.{minor}" for minor in range(features.OLDEST.minor, features.NEWEST.minor + 1)]
    name, equals, _ = item.partition("=")
    if equals:
        return [f"{before}{name}={version}" for version in known]
    return [f"{before}{word}" for word in (*known, *(f"{name}=" for name in _versioned()))]


def feature_gates(incomplete: str) -> list[str]:
    """Complete `Gate=true`, `scheduler=Gate=true,Other=false,...`."""
    before, item = _last_item(incomplete)
    parts = item.split("=")
    if len(parts) == 1:
        words = [f"{gate}=" for gate in _gates(_last_component(before))]
        words += [f"{name}=" for name in _versioned()]
    elif len(parts) == 2 and parts[0] in _versioned():
        words = [f"{parts[0]}={gate}=" for gate in _gates(parts[0])]
    else:
        words = [f"{'='.join(parts[:-1])}={value}" for value in ("true", "false")]
    return [f"{before}{word}" for word in words]


def own_versions(incomplete: str) -> list[str]:
    """Complete `1.36`, for one component."""
    return [word for word in versions(incomplete) if not word.endswith("=")]


def own_gates(incomplete: str) -> list[str]:
    """Complete `Gate=true,Other=false`, for one component."""
    before, item = _last_item(incomplete)
    gate, equals, _ = item.partition("=")
    words = (
        [f"{gate}={value}" for value in ("true", "false")] if equals else [f"{name}=" for name in _gates("")]
    )
    return [f"{before}{word}" for word in words]


def gate_names(incomplete: str) -> list[str]:
    """Return the names of all gates, and their aliases."""
    from nominee.machinery.features import gates as features

    return sorted((*features.gates(), *features.aliases()))


def failpoint_settings(incomplete: str) -> list[str]:
    """Complete `scheduler=scheduler.bind.before=crash`."""
    name, equals, rest = incomplete.partition("=")
    if not equals:
        return [f"{component.name}=" for component in COMPONENTS if component.name != "etcd"]
    point, equals, _ = rest.partition("=")
    if not equals:
        return [f"{name}={found}=" for found in failpoint_names(name)]
    return [f"{name}={point}={action}" for action in ACTIONS]


def failpoints_of_argument(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the failpoints of the COMPONENT argument before this word."""
    names = failpoint_names(str(context.params.get("component")))
    return [name for name in names if name.startswith(incomplete)]


def failpoint_names(name: str) -> list[str]:
    """Return the failpoints of a component or process; none for an unknown name."""
    from nominee.localcluster import declared_failpoints as declared

    try:
        component, _ = find_process(name)
    except UnknownComponentError:
        return []
    return declared.failpoints(component)


def fault_methods(incomplete: str) -> list[str]:
    """Return the methods of all servers."""
    return sorted({method for methods in FAULT_METHODS.values() for method in methods})


def fault_kinds(incomplete: str) -> list[str]:
    """Return the plurals of all kinds."""
    from nominee.machinery.api import kinds

    return sorted({kind.plural for kind in kinds.KINDS})


def kind_names(incomplete: str) -> list[str]:
    """Return the plurals of all kinds, then their short names."""
    from nominee.machinery.api import kinds

    short = {name for kind in kinds.KINDS for name in kind.short_names}
    return [*fault_kinds(incomplete), *sorted(short)]


def _last_item(incomplete: str) -> tuple[str, str]:
    """Split a list before its last item: the text up to the last comma, and the item."""
    before, comma, item = incomplete.rpartition(",")
    return f"{before}{comma}", item


def _last_component(before: str) -> str:
    """Return the component of a gate without one: the last named in the list; "" for all."""
    named = [item.partition("=")[0] for item in before.split(",") if item.count("=") == 2]
    return named[-1] if named else ""


def _versioned() -> list[str]:
    return [component.name for component in COMPONENTS if component.versioned]


def _gates(component: str) -> list[str]:
    """Return the gates of a component (of all for "") that can be set in some version, and their aliases."""
    from nominee.machinery.features import gates as features

    names = [
        gate.name
        for gate in features.gates().values()
        if (not component or component in gate.components) and any(not step.locked for step in gate.steps)
    ]
    return [*names, *(alias for alias, name in features.aliases().items() if name in names)]
