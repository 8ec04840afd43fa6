"""Identities of a cluster's processes at its API server, with upstream's names.

A kubelet process has many nodes. Its credential is the node of the process's own name; groups
`nominee:nodes:PATTERN` name the other nodes (see docs/design/008-authentication-and-authorization.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nominee.localcluster.credentials.authority import Identity
from nominee.localcluster.supervisor.model.node_ranges import of_kubelet, option_value
from nominee.localcluster.supervisor.model.spec import ProcessSpec

MASTERS, NODES = "system:masters", "system:nodes"
ADMIN = Identity("kubernetes-admin", (MASTERS,))
KUBELETS = Identity("nominee:kubelets")
"""Group of all kubelet processes, which may list the cloud's instances (autoscaler.cloud.access)."""
_COMPONENTS = {
    "scheduler": Identity("system:kube-scheduler"),
    "controllers": Identity("system:kube-controller-manager"),
    "autoscaler": Identity("cluster-autoscaler"),
    "cloud": Identity("system:cloud-controller-manager"),
}
_EVERYWHERE = ("", "0.0.0.0", "::")


def of_node(name: str) -> Identity:
    """Return the identity of a kubelet with one node, as upstream's."""
    return Identity(f"system:node:{name}", (NODES,))


def certificates() -> dict[str, Identity]:
    """Return the identities that get a client certificate, by component.

    They are the components that a real one could replace.
    """
    return {"admin": ADMIN, "kubelets": KUBELETS, **_COMPONENTS}


def tokens(processes: Sequence[ProcessSpec]) -> dict[str, Identity]:
    """Return the identities that get a bearer token, by process name."""
    found = {"admin": ADMIN, **_COMPONENTS}
    groups = [group for process in processes for group in _node_groups(process)]
    for process in processes:
        if process.component == "kubelet":
            found[process.name] = _kubelet(process, groups)
        elif process.component in _COMPONENTS:
            found[process.name] = _COMPONENTS[process.component]
    return found


def serving_names(processes: Sequence[ProcessSpec]) -> list[str]:
    """Return the addresses on which the API server listens, for its certificate."""
    servers = [process for process in processes if process.component == "apiserver"]
    names = ("--rest-address", "--grpc-address")
    hosts = [
        option_value(server.argv, name, "").rpartition(":")[0].strip("[]")
        for server in servers
        for name in names
    ]
    return [host for host in dict.fromkeys(hosts) if host not in _EVERYWHERE]


def _kubelet(process: ProcessSpec, node_groups: Sequence[str]) -> Identity:
    own = of_kubelet(process.argv)
    patterns = [str(own)] if own.count > 0 else []
    if "--cloud" in process.argv or option_value(process.argv, "--cloud-address", ""):
        patterns += [f"{group}-*" for group in node_groups]
    if option_value(process.argv, "--adopt", ""):
        # Nodes of another cluster have any names, and any of the kubelets may run them.
        patterns = ["*"]
    # The empty pattern matches no node. It marks the credential of a process with many nodes.
    groups = (f"nominee:nodes:{pattern}" for pattern in patterns or [""])
    return Identity(f"system:node:{process.name}", (NODES, *groups))


def _node_groups(process: ProcessSpec) -> Iterator[str]:
    """Return the names of a cloud's node groups, with which its instances' names begin."""
    path = option_value(process.argv, "--node-groups", "") if process.component == "cloud" else ""
    if not path:
        return
    import yaml

    try:
        document: Any = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        for group in document["nodeGroups"]:
            yield str(group["name"])
    except (OSError, yaml.YAMLError, KeyError, TypeError):
        # The cloud itself reports errors in its file.
        return
