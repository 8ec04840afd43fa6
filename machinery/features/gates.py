"""Emulated versions, and the feature gates at a version.

A process at an older version behaves as that version did. `Gates` answers for one component, version and
set of overrides; the table is `gate_table`. Errors are worded as upstream's component-base does (1.36).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Literal, NamedTuple, cast, get_args

from nominee.machinery.features.gate_table import GATES

Stage = Literal["alpha", "beta", "GA"]
_SETTLED_MAX = 256
"""Combinations of component, version and overrides that are cached."""

_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.\d{1,4})?", re.ASCII)
_BOOLS = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True)
_BOOLS |= dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False)


class Version(NamedTuple):
    """A minor release of Kubernetes; ordered, printed `1.37`."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @classmethod
    def parse(cls, text: str) -> Version:
        """`1.37`, `v1.37` or `1.37.2` (the patch is dropped); ValueError otherwise."""
        match = _VERSION.fullmatch(text.strip())
        if not match:
            raise ValueError(f'could not parse "{text}" as version')
        return cls(int(match[1]), int(match[2]))

    @property
    def previous(self) -> Version:
        return Version(self.major, self.minor - 1)


OLDEST = Version(1, 32)
NEWEST = Version(1, 38)
DEFAULT = Version(1, 37)


def parse_emulated_version(text: str) -> Version:
    """Return the version of `--emulated-version`.

    Raises:
        ValueError: the version cannot be emulated.
    """
    version = Version.parse(text)
    if not OLDEST <= version <= NEWEST:
        raise ValueError(f"emulation version {version} is not between [{OLDEST}, {NEWEST}]")
    return version


# How many minors a component may be older than the API server (Kubernetes' version skew policy).
_SKEW_MAX: Mapping[str, int] = {"scheduler": 1, "controllers": 1, "autoscaler": 1, "kubelet": 3}


def skew_problem(component: str, version: Version, apiserver: Version) -> str | None:
    """Return why this pair of versions is not supported upstream, or None. It still runs."""
    allowed = _SKEW_MAX.get(component)
    if allowed is None:
        return None
    if version > apiserver:
        return f"{component} {version} is newer than the API server {apiserver}"
    if apiserver.minor - version.minor > allowed:
        minors = "one minor version" if allowed == 1 else f"{allowed} minor versions"
        return f"{component} {version} is more than {minors} older than the API server {apiserver}"
    return None


class GateError(ValueError):
    """Feature gates that cannot be set so; `by_gate` has the message of each, as far as they are known."""

    def __init__(self, message: str, by_gate: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(message)
        self.by_gate = by_gate


class UnknownGateError(KeyError):
    """The program asks for a gate that the table lacks: a mistake in the program."""


@dataclass(frozen=True, slots=True)
class Step:
    """The state of a gate since one version."""

    since: Version
    stage: Stage
    default: bool
    locked: bool


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate with its history, oldest step first."""

    name: str
    components: frozenset[str]
    steps: tuple[Step, ...]
    needs: tuple[str, ...]
    merged_since: Version | None = None
    merged_into: str = ""

    def at(self, version: Version) -> Step | None:
        """Return the state of the gate at a version, or None before its first (upstream: PreAlpha)."""
        found = None
        for step in self.steps:
            if step.since <= version:
                found = step
        return found

    def exists_at(self, version: Version) -> bool:
        """False once it was merged into another gate."""
        return self.merged_since is None or version < self.merged_since


def _read_history(history: str) -> tuple[tuple[Step, ...], Version | None, str]:
    steps: list[Step] = []
    for sentence in history.split(";"):
        stage, version, *rest = sentence.split()
        if stage == "merged":
            return tuple(steps), Version.parse(version), rest[0]
        assert stage in get_args(Stage), history
        assert rest in (["on"], ["off"], ["locked", "on"], ["locked", "off"]), history
        since = Version.parse(version)
        steps.append(Step(since, cast("Stage", stage), rest[-1] == "on", rest[0] == "locked"))
    return tuple(steps), None, ""


@cache
def gates() -> Mapping[str, Gate]:
    """Return all gates of the table by name."""
    found = {}
    for row in GATES:
        steps, merged_since, merged_into = _read_history(row.history)
        found[row.name] = Gate(row.name, row.components, steps, row.needs, merged_since, merged_into)
    return found


@cache
def aliases() -> Mapping[str, str]:
    """Return other names of gates, and the names they stand for."""
    return {alias: row.name for row in GATES for alias in row.aliases}


@cache
def read_by(component: str) -> frozenset[str]:
    """Return the gates that a component reads."""
    return frozenset(gate.name for gate in gates().values() if component in gate.components)


@cache
def affecting(component: str) -> frozenset[str]:
    """Return the gates that a component reads, and those that these need."""
    found = set(read_by(component))
    added = found
    while added:
        added = {need for name in added for need in gates()[name].needs} - found
        found |= added
    return frozenset(found)


def no_effect(component: str, given: str) -> str:
    """Return the warning for a gate that a component does not read, or ""."""
    name = aliases().get(given, given)
    if name not in gates() or not read_by(component) or name in affecting(component):
        return ""
    readers = sorted(gates()[name].components)
    if not readers:
        return f"feature gate {given} has no effect: no component reads it"
    return f"feature gate {given} has no effect on {component}; it is for {', '.join(readers)}"


def parse_gates(text: str) -> dict[str, bool]:
    """`A=true,B=false` as a mapping, names not yet checked; GateError."""
    parsed: dict[str, bool] = {}
    for part in text.split(","):
        if not part:
            continue
        name, equals, value = part.partition("=")
        name, value = name.strip(), value.strip()
        if not equals:
            raise GateError(f"missing bool value for {name}")
        if value not in _BOOLS:
            syntax = f'strconv.ParseBool: parsing "{value}": invalid syntax'
            raise GateError(f"invalid value of {name}={value}, err: {syntax}")
        parsed[name] = _BOOLS[value]
    return parsed


def _go_bool(value: bool) -> str:
    return "true" if value else "false"


def _join(errors: Mapping[str, str]) -> GateError:
    """Return one error as it is, several in brackets, as upstream's aggregate prints them."""
    texts = list(errors.values())
    return GateError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]", errors)


@lru_cache(_SETTLED_MAX)
def _settled(
    component: str, version: Version, overrides: tuple[tuple[str, bool], ...]
) -> tuple[Mapping[str, bool], tuple[str, ...]]:
    """Return whether each gate and alias is on, and the warnings. Raises: GateError."""
    specific, stages, warnings = _check(component, version, dict(overrides))
    enabled = _effective(version, specific, stages)
    errors = {}
    for name, gate in gates().items():
        if not enabled.get(name) or not gate.exists_at(version):
            continue
        missing = [need for need in gate.needs if not enabled[need]]
        if missing:
            depends = f"depends on features that are disabled: [{' '.join(missing)}]"
            errors[name] = f"{name} is enabled, but {depends}"
    if errors:
        raise _join(errors)
    return enabled, warnings


def _check(
    component: str, version: Version, overrides: Mapping[str, bool]
) -> tuple[dict[str, bool], dict[Stage, bool], tuple[str, ...]]:
    """Return overrides by true name, those of whole stages, and warnings; GateError."""
    specific: dict[str, bool] = {}
    stages: dict[Stage, bool] = {}
    errors: dict[str, str] = {}
    warnings = []
    for given, wanted in overrides.items():
        if given in ("AllAlpha", "AllBeta"):
            stages["alpha" if given == "AllAlpha" else "beta"] = wanted
            continue
        name = aliases().get(given, given)
        gate = gates().get(name)
        if gate is None or not gate.exists_at(version):
            raise _join({given: f"unrecognized feature gate: {given}"})
        step = gate.at(version)
        setting = f"cannot set feature gate {given} to {_go_bool(wanted)}"
        if step is None:
            where = f"emulated version {version}, min compatibility version {version.previous}"
            errors[given] = f"{setting}, feature is PreAlpha at {where}"
        elif step.locked and step.default != wanted:
            errors[given] = f"{setting}, feature is locked to {_go_bool(step.default)}"
        elif specific.get(name, wanted) != wanted:
            errors[given] = f"{setting}, feature is set to {_go_bool(not wanted)} by its other name"
        elif step.stage == "GA":
            pair = f"{given}={_go_bool(wanted)}"
            warnings.append(f"Setting GA feature gate {pair}. It will be removed in a future release.")
        if warning := no_effect(component, given):
            warnings.append(warning)
        specific[name] = wanted
    if errors:
        raise _join(errors)
    return specific, stages, tuple(warnings)


def _effective(
    version: Version, specific: Mapping[str, bool], stages: Mapping[Stage, bool]
) -> dict[str, bool]:
    enabled: dict[str, bool] = {}
    for name, gate in gates().items():
        step = gate.at(version)
        default = step is not None and stages.get(step.stage, step.default)
        enabled[name] = specific.get(name, default)
    for name, gate in gates().items():
        if not gate.exists_at(version):
            enabled[name] = enabled[gate.merged_into]
    for alias, name in aliases().items():
        enabled[alias] = enabled[name]
    return enabled


class Gates:
    """Which features are on in one process. Immutable; `enabled` is one dictionary lookup."""

    __slots__ = ("_enabled", "component", "overrides", "version", "warnings")

    def __init__(
        self, component: str, version: Version = DEFAULT, overrides: Mapping[str, bool] | None = None
    ) -> None:
        """Any component may name any gate, as upstream; `AllAlpha` and `AllBeta` set whole stages.

        Raises GateError: a gate that does not exist at the version, a locked one set to the other value, one
        that is on while a gate it needs is off.
        """
        self.component = component
        self.version = version
        self.overrides = dict(overrides or {})
        self._enabled, self.warnings = _settled(component, version, tuple(self.overrides.items()))

    def enabled(self, name: str) -> bool:
        """Return whether a feature is on.

        Raises:
            UnknownGateError: the name is not in the table.
        """
        try:
            return self._enabled[name]
        except KeyError:
            raise UnknownGateError(f'feature "{name}" is not registered in FeatureGates') from None

    def all(self) -> dict[str, bool]:
        """Return every gate that exists at the version, by name."""
        return {
            name: self._enabled[name]
            for name, gate in sorted(gates().items())
            if gate.exists_at(self.version) and gate.at(self.version) is not None
        }

    def effective(self) -> dict[str, bool]:
        """Return the gates that the component reads, at this version; all for an unknown component."""
        read = read_by(self.component)
        return {name: value for name, value in self.all().items() if not read or name in read}

    def replace(self, **overrides: bool) -> Gates:
        """Return the same gates with other overrides on top.

        Raises:
            GateError: an override is not possible.
        """
        return Gates(self.component, self.version, self.overrides | overrides)

    def __str__(self) -> str:
        """Format the gates as `A=true,B=false`, the form that `parse_gates` reads."""
        return ",".join(f"{name}={_go_bool(value)}" for name, value in self.all().items())

    def __repr__(self) -> str:
        return f"Gates({self.component!r}, {str(self.version)!r}, {self.overrides!r})"
