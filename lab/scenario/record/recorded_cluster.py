"""`spec.cluster` of a recording: the options of a running cluster that a scenario has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import yaml

from nominee.localcluster.components import BY_NAME
from nominee.localcluster.supervisor.model.node_ranges import of_kubelet, option_value
from nominee.localcluster.supervisor.model.spec import ClusterSpec
from nominee.machinery.features.gates import DEFAULT, no_effect, parse_gates
from nominee.machinery.wire.values.scalars import Json

_RELAY: Final = "--peer-relay"
"""Steps that cut links between etcd members need it; other arguments are not recorded."""


def cluster_of(plan: ClusterSpec) -> dict[str, Json]:
    """Return the nodes, versions, gates with an effect, replicas and node groups of a plan.

    Raises:
        OSError, ValueError, KeyError, TypeError: the file of the node groups is not readable any more.
    """
    count = Counter(process.component for process in plan.processes)
    kubelets = [process for process in plan.processes if process.component == "kubelet"]
    cluster: dict[str, Json] = {"nodes": sum(of_kubelet(each.argv).count for each in kubelets)}
    if len(kubelets) > 1:
        cluster["kubelets"] = len(kubelets)
    if absent := [name for name in BY_NAME if name not in count]:
        cluster["without"] = absent
    if not plan.policy.restart:
        cluster["restart"] = "never"
    components: dict[str, dict[str, Json]] = {}
    for name, number in count.items():
        if number > 1 and name != "kubelet":
            components[name] = {"replicas": number}
    for process in plan.processes:
        if process.component not in BY_NAME:
            continue
        options: dict[str, Json] = {}
        version = option_value(process.argv, "--emulated-version", str(DEFAULT))
        if version != str(DEFAULT):
            options["emulatedVersion"] = version
        if gates := option_value(process.argv, "--feature-gates", ""):
            given = parse_gates(gates)
            read = {gate: on for gate, on in given.items() if not no_effect(process.component, gate)}
            options |= {"featureGates": read} if read else {}
        if not process.starts_with_cluster:
            options["stopped"] = True
        if process.component == "etcd" and _RELAY in process.argv:
            components["etcd"] = components.get("etcd", {}) | {"args": [_RELAY]}
        if options:
            components[process.name] = components.get(process.name, {}) | options
        if process.component == "apiserver" and not option_value(process.argv, "--tls-cert-file", ""):
            cluster["insecure"] = True
        groups = option_value(process.argv, "--node-groups", "") if process.component == "cloud" else ""
        if groups:
            cluster["nodeGroups"] = yaml.safe_load(Path(groups).read_text(encoding="utf-8"))["nodeGroups"]
    if components:
        cluster["components"] = components
    return cluster
