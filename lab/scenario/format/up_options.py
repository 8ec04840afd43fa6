"""A scenario's cluster as the files of `nominee up --config`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from nominee.lab.scenario.fields.options import ClusterOptions, ComponentOptions
from nominee.localcluster.components import COMPONENTS, find_process
from nominee.machinery.wire.files import yaml_text
from nominee.machinery.wire.values.scalars import Json

READY_SECONDS_MAX = 90
_TEXTS_MAX = 64


def missing_program(cluster: ClusterOptions) -> str:
    """Return the first program of a `command` that is not installed, or ""."""
    for options in cluster.components.values():
        if options.command and shutil.which(options.command[0]) is None:
            return options.command[0]
    return ""


def documents(cluster: ClusterOptions) -> Mapping[str, Json]:
    """Return the contents of the files by name: `up.yaml`, and those that it refers to."""
    programs = {name: list(own.command) for name, own in cluster.components.items() if own.command}
    absent = {*cluster.without, *programs}
    versions: dict[str, str] = {"": cluster.emulated_version} if cluster.emulated_version else {}
    up: dict[str, Json] = {
        "components": [each.name for each in COMPONENTS if each.name not in absent],
        "nodes": cluster.nodes,
        "kubelets": cluster.kubelets,
        "restart": "always" if cluster.restart else "never",
        "insecure": cluster.insecure,
        "timeout": READY_SECONDS_MAX,
    }
    files: dict[str, Json] = {"up.yaml": up}
    gates: dict[str, Mapping[str, bool]] = {}
    failpoints, arguments, replicas, stopped = {}, {}, {}, []
    for each in COMPONENTS:
        if each.versioned and each.name not in absent and cluster.feature_gates:
            gates[each.name] = cluster.shared_gates(each.name)
    for name, own in cluster.components.items():
        if own.command:
            continue
        if own.emulated_version:
            versions[name] = own.emulated_version
        if own.feature_gates:
            gates[name] = {**gates.get(name, {}), **own.feature_gates}
        if own.failpoints:
            failpoints[name] = [f"{point}={action}" for point, action in own.failpoints.items()]
        if own.arguments:
            arguments[name] = list(own.arguments)
        if own.replicas > 1:
            replicas[name] = own.replicas
        if own.stopped:
            stopped.append(name)
        if own.config is not None:
            up["schedulerConfig"] = "scheduler.yaml"
            files["scheduler.yaml"] = own.config
    if cluster.node_groups:
        up["nodeGroups"] = "groups.yaml"
        files["groups.yaml"] = {"nodeGroups": list(cluster.node_groups)}
    optional = {
        "featureGates": {name: dict(each) for name, each in gates.items()},
        "failpoints": failpoints,
        "args": arguments,
        "replicas": replicas,
        "stopped": stopped,
        "programs": programs,
    }
    up.update({key: value for key, value in optional.items() if value})
    if versions:
        up["emulatedVersion"] = versions if "" not in versions else _of_all(versions, absent)
    return files


def _of_all(versions: Mapping[str, str], absent: set[str]) -> dict[str, str]:
    """Return the versions with that of all components given by name."""
    shared = {each.name: versions[""] for each in COMPONENTS if each.versioned and each.name not in absent}
    return shared | {name: version for name, version in versions.items() if name}


def write(cluster: ClusterOptions, folder: Path) -> Path:
    """Write the files into a folder; return the path of `up.yaml`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in documents(cluster).items():
        (folder / name).write_text(_as_yaml(json.dumps(document)), encoding="utf-8")
    return folder / "up.yaml"


@lru_cache(_TEXTS_MAX)
def _as_yaml(text: str) -> str:
    """Return a JSON text as YAML. Simulations of a scenario with many seeds write the same each time."""
    return yaml_text.render(json.loads(text))


def arguments_of(cluster: ClusterOptions, component: str, options: ComponentOptions) -> list[str]:
    """Return the arguments that a start or restart adds to those of `up`: a step's options, merged."""
    found, name = find_process(component)
    base = cluster.component(found.name)
    own = cluster.component(name or found.name)
    arguments = [f"--emulated-version={options.emulated_version}"] if options.emulated_version else []
    if options.feature_gates:
        shared = cluster.shared_gates(found.name)
        gates = {**shared, **base.feature_gates, **own.feature_gates, **options.feature_gates}
        text = ",".join(f"{gate}={str(value).lower()}" for gate, value in gates.items())
        arguments.append(f"--feature-gates={text}")
    if options.failpoints:
        points = ";".join(f"{name}={action}" for name, action in options.failpoints.items())
        arguments.append(f"--failpoints={points}")
    return [*arguments, *options.arguments]
