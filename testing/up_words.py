"""The options of a cluster for tests as words of the command line of `nominee up`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nominee.machinery.wire.files.manifests import dump_yaml
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.scheduler.framework.interface import Plugin

Document = Mapping[str, Json]
PluginClass = type["Plugin"]


def words_of(
    nodes: int,
    versions: str | Mapping[str, str],
    gates: Mapping[str, Mapping[str, bool]],
    scheduler_config: Path | str | Document | None,
    plugins: Sequence[str | PluginClass],
    directory: Path,
) -> list[str]:
    """Return the words; a configuration that is no file yet is written into the directory.

    Raises: TypeError, PluginLoadError.
    """
    check_settings(versions, gates)
    words = ["--nodes", str(nodes)]
    for component, version in ({"": versions} if isinstance(versions, str) else versions).items():
        if version:
            words += ["--emulated-version", f"{component}={version}".removeprefix("=")]
    for component, own in gates.items():
        for gate, enabled in own.items():
            words += ["--feature-gates", f"{component}={gate}={str(enabled).lower()}".removeprefix("=")]
    for plugin in plugins:
        if not isinstance(plugin, str):
            # A test without plugins does not load the scheduler.
            from nominee.scheduler.plugin_loader import plugin_class

            plugin_class(plugin)
        words += ["--arg", f"scheduler=--plugin={module_and_class(plugin)}"]
    if plugins and scheduler_config is None:
        scheduler_config = configuration(map(_name, plugins))
    if isinstance(scheduler_config, Mapping):
        file = directory / "scheduler.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dump_yaml(dict(scheduler_config)), encoding="utf-8")
        scheduler_config = file
    return words if scheduler_config is None else [*words, "--scheduler-config", str(scheduler_config)]


def check_settings(versions: object, gates: Mapping[str, object]) -> None:
    """Check the form of versions and gates. Raises: TypeError."""
    if not isinstance(versions, str | Mapping):
        raise TypeError(f"emulated_version is '1.36' or {{'scheduler': '1.36'}}, not {versions!r}")
    if not all(isinstance(each, Mapping) for each in gates.values()):
        example = "{'scheduler': {'Gate': True}}, or {'': {'Gate': True}} for all components"
        raise TypeError(f"feature_gates are {example}; not {gates!r}")


def configuration(plugins: Iterable[str]) -> Document:
    """Return a KubeSchedulerConfiguration that enables plugins, by name, at all of their extension points."""
    enabled = [{"name": name} for name in plugins]
    profile = {"schedulerName": "default-scheduler", "plugins": {"multiPoint": {"enabled": enabled}}}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }


def module_and_class(plugin: str | PluginClass) -> str:
    """Return `module:Class`."""
    return plugin if isinstance(plugin, str) else f"{plugin.__module__}:{plugin.__qualname__}"


def _name(plugin: str | PluginClass) -> str:
    """Return a plugin's name in profiles; of a text it is that of the class, as most plugins have it."""
    return plugin.rpartition(":")[2] if isinstance(plugin, str) else plugin.name
