"""Options with components in their value: `scheduler=1.36,apiserver=1.37`, `scheduler=Gate=true`.

No I/O. Every error is an `OptionError` that names the option and says what to write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from nominee.localcluster.components import (
    BY_NAME,
    COMPONENTS,
    Component,
    UnknownComponentError,
    find_process,
)
from nominee.machinery.features import gates as machinery_versions

ALL = ""
"""The key of a setting for every component."""


class OptionError(ValueError):
    """An invalid option; `option` is its name on the command line."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(f"{option}: {message}")
        self.option = option
        self.message = message


def target(option: str, text: str) -> str:
    """Return the key of a component or of one of its processes: `scheduler`, `kubelet`, `kubelet-1`."""
    try:
        component, process = find_process(text)
    except UnknownComponentError as error:
        raise OptionError(option, str(error)) from None
    return process or component.name


def parse_components(option: str, text: str) -> tuple[str, ...]:
    """Parse a list of component names; return them in the order of starting."""
    names = {target(option, item) for item in text.split(",") if item.strip()}
    unknown = sorted(names - set(BY_NAME))
    if unknown:
        raise OptionError(
            option, f"{unknown[0]} is one process; write its component, and choose --kubelets or --replicas"
        )
    if not names:
        raise OptionError(option, f"names no component; known are {', '.join(BY_NAME)}")
    return tuple(component.name for component in COMPONENTS if component.name in names)


def parse_replicas(option: str, texts: Iterable[str]) -> dict[str, int]:
    """Parse `scheduler=2,etcd=3`; later ones win."""
    found = {}
    for item in _items(texts):
        name, equals, count = item.partition("=")
        if not equals or not count.isascii() or not count.isdigit():
            raise OptionError(option, f"{item!r} is not COMPONENT=NUMBER, such as scheduler=2")
        key = target(option, name)
        if key not in BY_NAME:
            raise OptionError(option, f"{key} is one process; write the component's name")
        if key == "kubelet":
            raise OptionError(option, "kubelet: use --kubelets")
        found[key] = int(count)
    return found


def parse_versions(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Parse `scheduler=1.36,apiserver=1.37`, or `1.36` for all (key ALL); later ones win."""
    versions = {}
    for item in _items(texts):
        name, equals, version = item.rpartition("=")
        try:
            emulated = machinery_versions.parse_emulated_version(version)
        except ValueError as error:
            raise OptionError(option, f"{item!r}: {error}; write COMPONENT=1.NN or 1.NN for all") from None
        key = target(option, name) if equals else ALL
        _must_be_versioned(option, key)
        versions[key] = str(emulated)
    return versions


def parse_gates(option: str, texts: Iterable[str]) -> dict[str, dict[str, bool]]:
    """Parse `scheduler=GateA=true,GateB=false,apiserver=GateC=true`, or `GateA=true` for all (key ALL).

    A gate without a component belongs to the component named last before it in the same option.
    """
    gates: dict[str, dict[str, bool]] = {}
    for text in texts:
        key = ALL
        for item in _items([text]):
            head, _, value = item.rpartition("=")
            name, _, gate = head.replace(":", "=").rpartition("=")
            try:
                parsed = machinery_versions.parse_gates(f"{gate}={value}")
            except machinery_versions.GateError:
                parsed = {}
            if not gate or not parsed:
                raise OptionError(option, f"{item!r} is not COMPONENT=Gate=true or COMPONENT=Gate=false")
            if name:
                key = target(option, name)
                _must_be_versioned(option, key)
            gates.setdefault(key, {}).update(parsed)
    return gates


def parse_assignments(option: str, texts: Iterable[str], example: str) -> dict[str, list[str]]:
    """Parse `COMPONENT=TEXT`, once per option; the text is taken as it is."""
    assignments: dict[str, list[str]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not value:
            raise OptionError(option, f"{text!r} is not COMPONENT=..., such as {example}")
        assignments.setdefault(target(option, name), []).append(value)
    return assignments


def setting(settings: Mapping[str, str], component: Component, process: str) -> str | None:
    """Return the setting of a process: its own, else its component's, else that of ALL."""
    for key in (process, component.name, ALL):
        if key in settings:
            return settings[key]
    return None


def merge_gates(
    settings: Mapping[str, Mapping[str, bool]], component: Component, process: str
) -> Mapping[str, bool]:
    """Return all gates set for a process; its own override its component's, and these those of ALL.

    Of those of ALL only the ones that affect the component: others may not exist at its version.
    """
    together: dict[str, bool] = {
        gate: value
        for gate, value in settings.get(ALL, {}).items()
        if not machinery_versions.no_effect(component.name, gate)
    }
    for key in dict.fromkeys((component.name, process)):
        together |= settings.get(key, {})
    return MappingProxyType(together)


def _items(texts: Iterable[str]) -> list[str]:
    return [item.strip() for text in texts for item in text.split(",") if item.strip()]


def _must_be_versioned(option: str, key: str) -> None:
    component = BY_NAME.get(key.rpartition("-")[0] or key) or BY_NAME.get(key)
    if component is not None and not component.versioned:
        raise OptionError(option, f"{component.name} has no emulated version and no feature gates")
