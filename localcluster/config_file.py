"""The file of `nominee up --config`: the options of `up` as YAML.

    components: [etcd, apiserver, scheduler, controllers, kubelet]
    nodes: 10
    emulatedVersion: {scheduler: "1.36"}
    featureGates: {scheduler: {NominatedNodeNameForExpectation: false}}
    failpoints: {scheduler: ["scheduler.bind.before=sleep(100)"]}
    args: {kubelet: ["--start-delay=1s"]}

Keys `kubelets`, `replicas` (`{scheduler: 2}`), `etcdServers`, `schedulerConfig`, `nodeGroups` (paths relative
to the file), `insecure` (true, false), `authorizationMode`, `history` (true, false), `restart` (always,
never) and `timeout` (seconds) as the options of these names. `stopped` lists components that a command starts
later; `programs` has the command lines of other programs by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nominee.localcluster.options import (
    OptionError,
    parse_components,
    parse_gates,
    parse_replicas,
    parse_versions,
    target,
)

Settings = dict[str, Any]
"""Arguments of `UpOptions` by name."""
Document = dict[str, Any]
"""The content of a file of options: values by key."""
_OPTION = "--config"
_SECONDS_MAX = 86_400.0
_Read = Callable[[Path, object], tuple[str, object]]
"""From the file's folder and a value of YAML to an argument of `UpOptions`: its name and value."""


@dataclass(frozen=True, slots=True)
class _Setting:
    """One key. If `read` raises TypeError or ValueError, `takes` is the error message."""

    takes: str
    example: str
    read: _Read

    def refusal(self, key: str, value: object) -> str:
        return f"{value!r} is not {self.takes}; write for example `{key}: {self.example}`"


def read_config(path: Path) -> Settings:
    """Return the settings of a file as arguments of `UpOptions`.

    Raises:
        OptionError: the file cannot be read, or a key or value is wrong; the message names the key.
    """
    import yaml

    from nominee.machinery.wire import yaml_text

    try:
        document = yaml_text.parse(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise OptionError(_OPTION, f"{path} cannot be read: {error}") from None
    return settings_of(document, path)


def settings_of(document: object, path: Path) -> Settings:
    """Return the settings of a file's content as arguments of `UpOptions`.

    Raises:
        OptionError: a key or value is wrong; the message names the key.
    """
    if not isinstance(document, dict):
        raise OptionError(_OPTION, f"{path} is not a mapping of options")
    settings = {}
    for key, value in document.items():
        setting = _SETTINGS.get(key) if isinstance(key, str) else None
        if setting is None:
            raise OptionError(_OPTION, f"{path}: unknown key {key!r}; known are {', '.join(_SETTINGS)}")
        try:
            name, settings_value = setting.read(path.parent, value)
        except (TypeError, ValueError) as error:
            text = error.message if isinstance(error, OptionError) else setting.refusal(key, value)
            raise OptionError(_OPTION, f"{path}: {key}: {text}") from None
        settings[name] = settings_value
    return settings


def document_of(settings: Settings) -> Document:
    """Return the content of a file with these settings: the inverse of `settings_of`.

    It can be written as JSON; paths are absolute.
    """
    document: Document = {}
    for key, name in _NAMES.items():
        if name not in settings:
            continue
        value = settings[name]
        if name == "secure":
            value = not value
        elif name == "restart":
            value = "always" if value else "never"
        elif isinstance(value, Path):
            value = str(value)
        elif isinstance(value, tuple):
            value = list(value)
        document[key] = value
    return document


def _components(_base: Path, value: object) -> tuple[str, object]:
    if isinstance(value, str):
        return "components", parse_components(_OPTION, value)
    return "components", parse_components(_OPTION, ",".join(_strings(value)))


def _strings(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise TypeError(value)
    return value


def _by_component(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise TypeError(value)
    return value


def _integer(name: str) -> _Read:
    def read(_base: Path, value: object) -> tuple[str, object]:
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ValueError(value)
        return name, value

    return read


def _text(name: str) -> _Read:
    def read(_base: Path, value: object) -> tuple[str, object]:
        if not isinstance(value, str) or not value:
            raise TypeError(value)
        return name, value

    return read


def _seconds(_base: Path, value: object) -> tuple[str, object]:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError(value)
    if not 0 < (seconds := float(value)) <= _SECONDS_MAX:
        raise ValueError(value)
    return "ready_seconds_max", seconds


def _replicas(_base: Path, value: object) -> tuple[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError(value)
    return "replicas", parse_replicas(_OPTION, [f"{name}={count}" for name, count in value.items()])


def _path(name: str) -> _Read:
    def read(base: Path, value: object) -> tuple[str, object]:
        if not isinstance(value, str):
            raise TypeError(value)
        path = (base / value).absolute()
        if not path.is_file():
            raise OptionError(_OPTION, f"there is no file {path}; a path is relative to the file of options")
        return name, path

    return read


def _versions(_base: Path, value: object) -> tuple[str, object]:
    if not isinstance(value, Mapping | str | float):
        raise TypeError(value)
    items = value.items() if isinstance(value, Mapping) else [("", value)]
    texts = [f"{component}={version}" if component else str(version) for component, version in items]
    return "versions", parse_versions(_OPTION, texts)


def _gates(_base: Path, value: object) -> tuple[str, object]:
    texts = [
        f"{component}={gate}={str(enabled).lower()}".removeprefix("=")
        for component, gates in _by_component(value).items()
        for gate, enabled in _by_component(gates).items()
    ]
    return "gates", parse_gates(_OPTION, texts)


def _texts(name: str) -> _Read:
    def read(_base: Path, value: object) -> tuple[str, object]:
        return name, {
            target(_OPTION, component): [texts] if isinstance(texts, str) else _strings(texts)
            for component, texts in _by_component(value).items()
        }

    return read


def _stopped(_base: Path, value: object) -> tuple[str, object]:
    return "stopped", tuple(target(_OPTION, name) for name in _strings(value))


def _programs(_base: Path, value: object) -> tuple[str, object]:
    return "programs", {name: _strings(command) for name, command in _by_component(value).items()}


def _insecure(_base: Path, value: object) -> tuple[str, object]:
    if not isinstance(value, bool):
        raise TypeError(value)
    return "secure", not value


def _history(_base: Path, value: object) -> tuple[str, object]:
    if not isinstance(value, bool):
        raise TypeError(value)
    return "records_history", value


def _restart(_base: Path, value: object) -> tuple[str, object]:
    if value not in ("always", "never"):
        raise ValueError(value)
    return "restart", value == "always"


_SETTINGS: Mapping[str, _Setting] = {
    "components": _Setting("a list of components", "[etcd, apiserver, scheduler]", _components),
    "nodes": _Setting("a number of nodes", "10", _integer("nodes")),
    "kubelets": _Setting("a number of processes", "2", _integer("kubelets")),
    "replicas": _Setting("numbers by component", "{scheduler: 2, etcd: 3}", _replicas),
    "emulatedVersion": _Setting("a version, or versions by component", '{scheduler: "1.36"}', _versions),
    "featureGates": _Setting("true or false by component and gate", "{scheduler: {Gate: true}}", _gates),
    "failpoints": _Setting(
        "a list of texts by component", '{scheduler: ["scheduler.bind.before=crash"]}', _texts("failpoints")
    ),
    "args": _Setting("a list of texts by component", '{kubelet: ["--start-delay=1s"]}', _texts("arguments")),
    "schedulerConfig": _Setting("the path of a file", "scheduler.yaml", _path("scheduler_config")),
    "nodeGroups": _Setting("the path of a file", "groups.yaml", _path("node_groups")),
    "stopped": _Setting("a list of components", "[autoscaler]", _stopped),
    "programs": _Setting("command lines by name", '{descheduler: ["descheduler", "--v=2"]}', _programs),
    "etcdServers": _Setting("a text with addresses", "http://127.0.0.1:2379", _text("etcd_servers")),
    "insecure": _Setting("true or false", "true", _insecure),
    "authorizationMode": _Setting("a text with modes", "Node,RBAC", _text("authorization_mode")),
    "history": _Setting("true or false", "true", _history),
    "restart": _Setting("always or never", "never", _restart),
    "timeout": _Setting("a number of seconds up to a day", "60", _seconds),
}
_NAMES: Mapping[str, str] = {
    "components": "components",
    "nodes": "nodes",
    "kubelets": "kubelets",
    "replicas": "replicas",
    "emulatedVersion": "versions",
    "featureGates": "gates",
    "failpoints": "failpoints",
    "args": "arguments",
    "schedulerConfig": "scheduler_config",
    "nodeGroups": "node_groups",
    "stopped": "stopped",
    "programs": "programs",
    "etcdServers": "etcd_servers",
    "insecure": "secure",
    "authorizationMode": "authorization_mode",
    "history": "records_history",
    "restart": "restart",
    "timeout": "ready_seconds_max",
}
"""The name in `UpOptions` of each key."""
