"""A scenario's cluster as the files of `nominee up --config`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import cast

from nominee.lab.scenario.fields.options import ClusterOptions, ComponentOptions
from nominee.localcluster.components import BY_NAME, COMPONENTS, find_process
from nominee.machinery.wire.files import yaml_text
from nominee.machinery.wire.values.scalars import Json

READY_SECONDS_MAX = 90
_PLAIN_CONFIGURATION: Mapping[str, Json] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
}
"""There is one process; as a leader it would wait for the lease of one that was killed."""
_TEXTS_MAX = 64


def missing_program(cluster: ClusterOptions) -> str:
    """Return the first program of a `command` that is not installed, or ""."""
    for options in cluster.components.values():
        if options.command and shutil.which(options.command[0]) is None:
            return options.command[0]
    return ""


def documents(cluster: ClusterOptions) -> Mapping[str, Json]:
    """Return the contents of the files by name: `up.yaml`, and those that it refers to."""
    programs = {name: _command(cluster, name) for name, own in cluster.components.items() if own.command}
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
    if "apiserver" not in absent:
        # `nominee history` reads in its log who made a write.
        arguments["apiserver"] = ["--log-level=debug", *arguments.get("apiserver", ())]
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


def _command(cluster: ClusterOptions, name: str) -> list[str]:
    """Return the command line of a program with its gates; a word for gates is left out without gates."""
    own = cluster.component(name)
    shared = cluster.shared_gates(name) if name in BY_NAME else {}
    gates = ",".join(f"{key}={str(on).lower()}" for key, on in {**shared, **own.feature_gates}.items())
    words = [word for word in own.command if gates or "{gates}" not in word]
    return [word.replace("{gates}", gates) for word in words]


def configuration_file(name: str) -> str:
    """Return the name of the file that `{config}` stands for in the command line of a program."""
    return f"{name}-config.yaml"


def program_configurations(cluster: ClusterOptions, kubeconfig: Path) -> Mapping[str, Json]:
    """Return the component configurations of programs that read one, by file: the scenario's, or a plain one.

    A program reads the API server's address and its credentials from the configuration too.
    """
    found: dict[str, Json] = {}
    for name, own in cluster.components.items():
        if any("{config}" in word for word in own.command):
            document = own.config or _PLAIN_CONFIGURATION
            connection = {**document.get("clientConnection", {}), "kubeconfig": str(kubeconfig)}
            found[configuration_file(name)] = {**document, "clientConnection": connection}
    return found


def _of_all(versions: Mapping[str, str], absent: set[str]) -> dict[str, str]:
    """Return the versions with that of all components given by name."""
    shared = {each.name: versions[""] for each in COMPONENTS if each.versioned and each.name not in absent}
    return shared | {name: version for name, version in versions.items() if name}


def write(cluster: ClusterOptions, folder: Path) -> Path:
    """Write the files into a folder of the state directory; return the path of `up.yaml`."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {**documents(cluster), **program_configurations(cluster, folder.parent / "kubeconfig")}
    for name in cluster.components:
        programs = cast("dict[str, Json]", files["up.yaml"]).get("programs", {})
        if name in programs:
            path = str(folder / configuration_file(name))
            programs[name] = [word.replace("{config}", path) for word in programs[name]]
    for name, document in files.items():
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
