"""The file of `nominee up --config`: the options of `up` as YAML.

    components: [etcd, apiserver, scheduler, controllers, kubelet]
    nodes: 10
    emulatedVersion: {scheduler: "1.36"}
    featureGates: {scheduler: {NominatedNodeNameForExpectation: false}}
    failpoints: {scheduler: ["scheduler.bind.before=sleep(100)"]}
    args: {kubelet: ["--start-delay=1s"]}

Keys `kubelets`, `etcdServers`, `schedulerConfig`, `nodeGroups` (paths relative to the file), `insecure`
(true, false), `authorizationMode`, `restart` (always, never) and `timeout` (seconds) as the options of these
names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nominee.options import OptionError, parse_components, parse_gates, parse_versions, target

_OPTION = "--config"


def read_config(path: Path) -> dict[str, Any]:
    """The settings of a file as arguments of `UpOptions`; OptionError names the key that cannot be."""
    import yaml

    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise OptionError(_OPTION, f"{path} cannot be read: {error}") from None
    if not isinstance(document, dict):
        raise OptionError(_OPTION, f"{path} is not a mapping of options")
    settings = {}
    for key, value in document.items():
        reader = _READERS.get(key)
        if reader is None:
            raise OptionError(_OPTION, f"{path}: unknown key {key!r}; known are {', '.join(_READERS)}")
        try:
            name, settings_value = reader(path.parent, value)
        except (TypeError, AttributeError, ValueError) as error:
            text = error.message if isinstance(error, OptionError) else f"{value!r} is not what it takes"
            raise OptionError(_OPTION, f"{path}: {key}: {text}") from None
        settings[name] = settings_value
    return settings


def _components(_base: Path, value: Any) -> tuple[str, Any]:
    return "components", parse_components(_OPTION, value if isinstance(value, str) else ",".join(value))


def _integer(name: str) -> Callable[[Path, Any], tuple[str, Any]]:
    def read(_base: Path, value: Any) -> tuple[str, Any]:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(value)
        return name, value

    return read


def _path(name: str) -> Callable[[Path, Any], tuple[str, Any]]:
    def read(base: Path, value: Any) -> tuple[str, Any]:
        path = (base / value).absolute()
        if not path.is_file():
            raise OptionError(_OPTION, f"there is no file {path}")
        return name, path

    return read


def _versions(_base: Path, value: Any) -> tuple[str, Any]:
    items = value.items() if isinstance(value, Mapping) else [("", value)]
    texts = [f"{component}={version}" if component else str(version) for component, version in items]
    return "versions", parse_versions(_OPTION, texts)


def _gates(_base: Path, value: Any) -> tuple[str, Any]:
    texts = [
        f"{component}={gate}={str(enabled).lower()}"
        for component, gates in value.items()
        for gate, enabled in gates.items()
    ]
    return "gates", parse_gates(_OPTION, texts)


def _texts(name: str) -> Callable[[Path, Any], tuple[str, Any]]:
    def read(_base: Path, value: Any) -> tuple[str, Any]:
        return name, {
            target(_OPTION, component): [texts] if isinstance(texts, str) else [str(text) for text in texts]
            for component, texts in value.items()
        }

    return read


def _insecure(_base: Path, value: Any) -> tuple[str, Any]:
    if not isinstance(value, bool):
        raise OptionError(_OPTION, f"{value!r} is not true or false")
    return "secure", not value


def _restart(_base: Path, value: Any) -> tuple[str, Any]:
    if value not in ("always", "never"):
        raise OptionError(_OPTION, f"{value!r} is not always or never")
    return "restart", value == "always"


_READERS: Mapping[str, Callable[[Path, Any], tuple[str, Any]]] = {
    "components": _components,
    "nodes": _integer("nodes"),
    "kubelets": _integer("kubelets"),
    "emulatedVersion": _versions,
    "featureGates": _gates,
    "failpoints": _texts("failpoints"),
    "args": _texts("arguments"),
    "schedulerConfig": _path("scheduler_config"),
    "nodeGroups": _path("node_groups"),
    "etcdServers": lambda _base, value: ("etcd_servers", str(value)),
    "insecure": _insecure,
    "authorizationMode": lambda _base, value: ("authorization_mode", str(value)),
    "restart": _restart,
    "timeout": lambda _base, value: ("ready_seconds_max", float(value)),
}
