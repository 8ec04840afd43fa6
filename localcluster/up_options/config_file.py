"""The file of `nominee up --config`: the options of `up` as YAML.

    components: [etcd, apiserver, scheduler, controllers, kubelet]
    nodes: 10
    emulatedVersion: {scheduler: "1.36"}
    featureGates: {scheduler: {NominatedNodeNameForExpectation: false}}
    failpoints: {scheduler: ["scheduler.bind.before=sleep(100)"]}
    args: {kubelet: ["--start-delay=1s"]}

Keys `kubelets`, `replicas` (`{scheduler: 2}`), `etcdServers`, `schedulerConfig`, `nodeGroups` (paths relative
to the file), `insecure` (true, false), `authorizationMode`, `history`, `dashboard` and `adopt` (true, false),
`restart` (always, never) and `timeout` (seconds) as the options of these names. `stopped` lists components
that a command starts later; `programs` has the command lines of other programs by name.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nominee.localcluster.up_options.options import (
    OptionError,
    parse_components,
    parse_gates,
    parse_replicas,
    parse_versions,
    target,
)

UpArguments = dict[str, Any]
"""Arguments of `UpOptions` by name."""
Document = dict[str, Any]
"""The content of a file of options: values by key."""
_OPTION = "--config"
_SECONDS_MAX = 86_400.0
_Read = Callable[[Path, object], object]
"""From the file's folder and a value of YAML to the value of an argument of `UpOptions`."""


@dataclass(frozen=True, slots=True)
class _Setting:
    """One key. If `read` raises TypeError or ValueError, `takes` is the error message.

    `name` is the argument of `UpOptions`; `write` makes of its value one that JSON has.
    """

    name: str
    takes: str
    example: str
    read: _Read
    write: Callable[..., object] = lambda value: value

    def refusal(self, key: str, value: object) -> str:
        return f"{value!r} is not {self.takes}; write for example `{key}: {self.example}`"


def read_config(path: Path) -> UpArguments:
    """Return the settings of a file as arguments of `UpOptions`.

    Raises:
        OptionError: the file cannot be read, or a key or value is wrong; the message names the key.
    """
    # For a file only: 30 ms.
    import yaml

    from nominee.machinery.wire.files import yaml_text

    try:
        document = yaml_text.parse(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise OptionError(_OPTION, f"{path} cannot be read: {error}") from None
    return settings_of(document, path)


def settings_of(document: object, path: Path) -> UpArguments:
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
            settings[setting.name] = setting.read(path.parent, value)
        except (TypeError, ValueError) as error:
            text = error.message if isinstance(error, OptionError) else setting.refusal(key, value)
            raise OptionError(_OPTION, f"{path}: {key}: {text}") from None
    return settings


def document_of(settings: UpArguments) -> Document:
    """Return the content of a file with these settings: the inverse of `settings_of`.

    It can be written as JSON; paths are absolute.
    """
    return {key: each.write(settings[each.name]) for key, each in _SETTINGS.items() if each.name in settings}


def _components(_base: Path, value: object) -> object:
    return parse_components(_OPTION, value if isinstance(value, str) else ",".join(_strings(value)))


def _strings(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise TypeError(value)
    return value


def _by_component(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise TypeError(value)
    return value


def _integer(_base: Path, value: object) -> object:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(value)
    return value


def _text(_base: Path, value: object) -> object:
    if not isinstance(value, str) or not value:
        raise TypeError(value)
    return value


def _seconds(_base: Path, value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError(value)
    if not 0 < (seconds := float(value)) <= _SECONDS_MAX:
        raise ValueError(value)
    return seconds


def _replicas(_base: Path, value: object) -> object:
    if not isinstance(value, Mapping):
        raise TypeError(value)
    return parse_replicas(_OPTION, [f"{name}={count}" for name, count in value.items()])


def _path(base: Path, value: object) -> object:
    if not isinstance(value, str):
        raise TypeError(value)
    path = (base / value).absolute()
    if not path.is_file():
        raise OptionError(_OPTION, f"there is no file {path}; a path is relative to the file of options")
    return path


def _versions(_base: Path, value: object) -> object:
    if not isinstance(value, Mapping | str | float):
        raise TypeError(value)
    items = value.items() if isinstance(value, Mapping) else [("", value)]
    texts = [f"{component}={version}" if component else str(version) for component, version in items]
    return parse_versions(_OPTION, texts)


def _gates(_base: Path, value: object) -> object:
    texts = [
        f"{component}={gate}={str(enabled).lower()}".removeprefix("=")
        for component, gates in _by_component(value).items()
        for gate, enabled in _by_component(gates).items()
    ]
    return parse_gates(_OPTION, texts)


def _texts(_base: Path, value: object) -> object:
    return {
        target(_OPTION, component): [texts] if isinstance(texts, str) else _strings(texts)
        for component, texts in _by_component(value).items()
    }


def _stopped(_base: Path, value: object) -> object:
    return tuple(target(_OPTION, name) for name in _strings(value))


def _programs(_base: Path, value: object) -> object:
    return {name: _strings(command) for name, command in _by_component(value).items()}


def _flag(_base: Path, value: object) -> object:
    if not isinstance(value, bool):
        raise TypeError(value)
    return value


def _restart(_base: Path, value: object) -> object:
    if value not in ("always", "never"):
        raise ValueError(value)
    return value == "always"


_SETTINGS: Mapping[str, _Setting] = {
    "components": _Setting(
        "components", "a list of components", "[etcd, apiserver, scheduler]", _components, list
    ),
    "nodes": _Setting("nodes", "a number of nodes", "10", _integer),
    "kubelets": _Setting("kubelets", "a number of processes", "2", _integer),
    "replicas": _Setting("replicas", "numbers by component", "{scheduler: 2, etcd: 3}", _replicas),
    "emulatedVersion": _Setting(
        "versions", "a version, or versions by component", '{scheduler: "1.36"}', _versions
    ),
    "featureGates": _Setting(
        "gates", "true or false by component and gate", "{scheduler: {Gate: true}}", _gates
    ),
    "failpoints": _Setting(
        "failpoints", "a list of texts by component", '{scheduler: ["scheduler.bind.before=crash"]}', _texts
    ),
    "args": _Setting("arguments", "a list of texts by component", '{kubelet: ["--start-delay=1s"]}', _texts),
    "schedulerConfig": _Setting("scheduler_config", "the path of a file", "scheduler.yaml", _path, str),
    "nodeGroups": _Setting("node_groups", "the path of a file", "groups.yaml", _path, str),
    "stopped": _Setting("stopped", "a list of components", "[autoscaler]", _stopped, list),
    "programs": _Setting(
        "programs", "command lines by name", '{descheduler: ["descheduler", "--v=2"]}', _programs
    ),
    "etcdServers": _Setting("etcd_servers", "a text with addresses", "http://127.0.0.1:2379", _text),
    "insecure": _Setting(
        "secure", "true or false", "true", lambda base, value: not _flag(base, value), operator.not_
    ),
    "authorizationMode": _Setting("authorization_mode", "a text with modes", "Node,RBAC", _text),
    "history": _Setting("records_history", "true or false", "true", _flag),
    "dashboard": _Setting("has_dashboard", "true or false", "true", _flag),
    "adopt": _Setting("adopts_nodes", "true or false", "true", _flag),
    "restart": _Setting(
        "restart", "always or never", "never", _restart, lambda value: "always" if value else "never"
    ),
    "timeout": _Setting("ready_seconds_max", "a number of seconds up to a day", "60", _seconds),
}
