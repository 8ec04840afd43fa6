"""Who the processes of a cluster are to its API server: upstream's names for them.

A kubelet process carries many nodes. Its credential is the node of the process's own name and names the
others in groups, `nominee:nodes:PATTERN` (see docs/design/008-who-may-do-what.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nominee.pki import Identity
from nominee.supervisor.spec import ProcessSpec

MASTERS, NODES = "system:masters", "system:nodes"
ADMIN = Identity("kubernetes-admin", (MASTERS,))
_COMPONENTS = {
    "scheduler": Identity("system:kube-scheduler"),
    "controllers": Identity("system:kube-controller-manager"),
    "autoscaler": Identity("cluster-autoscaler"),
    "cloud": Identity("system:cloud-controller-manager"),
}
_NODE_PREFIX = "node-"
_EVERYWHERE = ("", "0.0.0.0", "::")


def of_node(name: str) -> Identity:
    """A kubelet with one node, as upstream's."""
    return Identity(f"system:node:{name}", (NODES,))


def certificates() -> dict[str, Identity]:
    """Who gets a client certificate: those whose part a real component could play, by our names."""
    return {"admin": ADMIN, **_COMPONENTS}


def tokens(processes: Sequence[ProcessSpec]) -> dict[str, Identity]:
    """Who gets a bearer token, by process name."""
    found = {"admin": ADMIN, **_COMPONENTS}
    groups = [group for process in processes for group in _node_groups(process)]
    for process in processes:
        if process.component == "kubelet":
            found[process.name] = _kubelet(process, groups)
    return found


def serving_names(processes: Sequence[ProcessSpec]) -> list[str]:
    """Addresses that the API server was told to listen on, for its certificate."""
    servers = [process for process in processes if process.component == "apiserver"]
    options = ("--rest-address", "--grpc-address")
    hosts = [
        _option(server.argv, name, "").rpartition(":")[0].strip("[]")
        for server in servers
        for name in options
    ]
    return [host for host in dict.fromkeys(hosts) if host not in _EVERYWHERE]


def _kubelet(process: ProcessSpec, node_groups: Sequence[str]) -> Identity:
    arguments = process.argv
    prefix = _option(arguments, "--node-name-prefix", _NODE_PREFIX)
    first = int(_option(arguments, "--first-node", "0"))
    count = int(_option(arguments, "--nodes", "1"))
    patterns = [f"{prefix}{first}..{first + count - 1}"] if count > 0 else []
    if "--cloud" in arguments or _option(arguments, "--cloud-address", ""):
        patterns += [f"{group}-*" for group in node_groups]
    groups = (f"nominee:nodes:{pattern}" for pattern in patterns)
    return Identity(f"system:node:{process.name}", (NODES, *groups))


def _option(arguments: Sequence[str], name: str, default: str) -> str:
    """The last value of an option, as `--name value` or `--name=value`."""
    value = default
    for index, argument in enumerate(arguments):
        if argument == name and index + 1 < len(arguments):
            value = arguments[index + 1]
        elif argument.startswith(f"{name}="):
            value = argument.partition("=")[2]
    return value


def _node_groups(process: ProcessSpec) -> Iterator[str]:
    """The names of a cloud's groups: its machines' names begin with them."""
    path = _option(process.argv, "--node-groups", "") if process.component == "cloud" else ""
    if not path:
        return
    import yaml

    try:
        document: Any = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        for group in document["nodeGroups"]:
            yield str(group["name"])
    except (OSError, yaml.YAMLError, KeyError, TypeError):
        # The cloud itself says what is wrong with its file.
        return
