"""A skew matrix as data: rows, the versions, gates and paths of each, and the answers of KEPs to check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from nominee.lab.reports.records import Record
from nominee.localcluster.components import COMPONENTS
from nominee.machinery.features import gates as features
from nominee.machinery.wire.values.scalars import Json

API_VERSION = "skew.nominee.dev/v1alpha1"
KIND = "SkewMatrix"

JsonObject = Mapping[str, Json]
Gates = Mapping[str, bool]

VERSIONED = tuple(component.name for component in COMPONENTS if component.versioned)
"""The components that have an emulated version and feature gates."""


def component_of(name: str) -> str:
    """Return the component of a process (`apiserver-1`), or the component itself."""
    return name if name in VERSIONED else name.rpartition("-")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program(Record):
    """Another program as a value of a component's version, such as the real kube-scheduler of a release.

    `version` and `gates` are the program's own: they decide which cases of a row apply.
    """

    name: str
    component: str
    command: tuple[str, ...]
    version: str
    gates: Gates = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The versions and gates of the components at one time, and the programs in the places of components.

    `versions` may also name one process of a component (`apiserver-1`). A process without a version follows
    its component, a component the API server, and the API server the default version.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    gates: Mapping[str, Gates] = field(default_factory=dict)
    programs: Mapping[str, Program] = field(default_factory=dict)

    def version(self, component: str) -> features.Version:
        """Return the emulated version of a component or process."""
        found = (
            self.versions.get(component)
            or self.versions.get(component_of(component))
            or self.versions.get("apiserver")
        )
        return features.parse_emulated_version(found) if found else features.DEFAULT

    def effective(self, component: str) -> features.Gates:
        """Return the gates of a component or process.

        Raises:
            GateError: the component refuses them at its version.
        """
        base = component_of(component)
        return features.Gates(base, self.version(component), self.gates.get(base, {}))

    @property
    def processes(self) -> tuple[str, ...]:
        """Return the processes that have a version of their own."""
        return tuple(name for name in self.versions if name not in VERSIONED)

    def unsupported(self, components: Iterable[str]) -> tuple[str, ...]:
        """Return why Kubernetes' version skew policy does not support the versions of these components."""
        apiserver = self.version("apiserver")
        found = [features.skew_problem(name, self.version(name), apiserver) for name in components]
        for name in self.processes:
            version = self.version(name)
            if component_of(name) != "apiserver":
                found.append(features.skew_problem(component_of(name), version, apiserver))
            elif abs(version.minor - apiserver.minor) > 1:
                found.append(f"API servers {apiserver} and {version} are more than one minor version apart")
        return tuple(problem for problem in found if problem)

    def as_json(self) -> JsonObject:
        """Return the setting as JSON."""
        return {
            "versions": {name: str(self.version(name)) for name in (*VERSIONED, *self.processes)},
            "featureGates": {name: dict(own) for name, own in self.gates.items() if own},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentWhen(Record):
    """Conditions on a component: version at least, version below, effective gates."""

    at_least: str = ""
    below: str = ""
    gates: Gates = field(default_factory=dict)


When = Mapping[str, ComponentWhen]
"""Conditions by component; all must hold. An empty mapping always holds."""


def holds(when: When, setting: Setting) -> bool:
    """Return whether the conditions hold for a setting."""
    for component, own in when.items():
        version = setting.version(component)
        if own.at_least and version < features.Version.parse(own.at_least):
            return False
        if own.below and version >= features.Version.parse(own.below):
            return False
        gates = setting.effective(component)
        if any(gates.enabled(name) != value for name, value in own.gates.items()):
            return False
    return True


def when_text(when: When) -> str:
    """Return conditions as text: `apiserver from 1.35, scheduler with Gate off`; "otherwise" if empty."""
    parts = []
    for component, own in when.items():
        words = [f"from {own.at_least}"] if own.at_least else []
        words += [f"before {own.below}"] if own.below else []
        words += [f"with {name} {'on' if value else 'off'}" for name, value in own.gates.items()]
        parts.append(" ".join([component, *words]))
    return ", ".join(parts) or "otherwise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(Record):
    """An observation by a user, its condition, and the steps that check it. The first that holds applies."""

    name: str
    when: When = field(default_factory=dict)
    see: str
    steps: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe(Record):
    """Steps that are played at the start and after each restart of a path, and cases for them.

    `${STAGE}` in them is the number of restarts so far.
    """

    steps: tuple[JsonObject, ...] = ()
    cases: tuple[Case, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """An upgrade or downgrade: the components of `order`, one at a time, from point to point.

    Towards an older version the order is reversed.
    """

    name: str
    order: tuple[str, ...]
    points: tuple[Setting, ...]


class Simulate(Enum):
    """Which cells of a row are simulated, of those that can be.

    REPEATED: those that show no case that an earlier cell of the row does not show. Real processes play the
    first cell of a row, and each with a case of its own.
    """

    NONE = "none"
    REPEATED = "repeated"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A scenario and its factors.

    `document` is the scenario, a JSON object of its file. `full`: all combinations run, not a selection.
    A value of `versions` is a version or the name of one of the `programs`.
    """

    name: str
    title: str = ""
    kep: int = 0
    section: str = ""
    line: int = 0
    document: JsonObject = field(repr=False)
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    programs: Mapping[str, Program] = field(default_factory=dict)
    gates: Mapping[str, tuple[Gates, ...]] = field(default_factory=dict)
    paths: tuple[Path, ...] = ()
    after: tuple[str, ...] = ()
    probe: Probe = Probe()
    cases: tuple[Case, ...] = ()
    full: bool = False
    simulate: Simulate = Simulate.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Record):
    """An answer that a KEP gives, and the cells that confirm or contradict it.

    The cells of `rows` for which `where` holds (at one stage, for paths) must have shown one of the cases
    `shows` and none of `contradicted_by`, or passed if both are empty. `untested`: why no run can decide it.
    """

    kep: int
    section: str
    answer: str
    rows: tuple[str, ...] = ()
    where: When = field(default_factory=dict)
    shows: tuple[str, ...] = ()
    contradicted_by: tuple[str, ...] = ()
    note: str = ""
    untested: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A whole matrix. `text` is the file."""

    name: str
    title: str = ""
    file: str = ""
    rows: tuple[Row, ...]
    answers: tuple[Answer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A time between two restarts of a cell. `restarted` is "" at the start."""

    setting: Setting
    restarted: str = ""

    @property
    def label(self) -> str:
        """Return `scheduler 1.35`, or `start`."""
        return f"{self.restarted} {self.setting.version(self.restarted)}" if self.restarted else "start"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One run: a row, and the value of each of its factors as text. A path has several stages."""

    row: Row
    values: Mapping[str, str]
    stages: tuple[Stage, ...]
    after: str = ""

    @property
    def name(self) -> str:
        """Return a name that is unique in the matrix: `row apiserver=1.34 scheduler=1.35`."""
        return " ".join([self.row.name, *(f"{factor}={value}" for factor, value in self.values.items())])

    @property
    def programs(self) -> Mapping[str, tuple[str, ...]]:
        """Return the command lines of the programs in the places of components."""
        return {name: each.command for name, each in self.stages[0].setting.programs.items()}

    @property
    def unsupported(self) -> tuple[str, ...]:
        """Return the pairs outside Kubernetes' version skew policy, at any stage."""
        absent = self.row.document["spec"].get("cluster", {}).get("without", ())
        components = [name for name in VERSIONED if name not in absent]
        found = (text for stage in self.stages for text in stage.setting.unsupported(components))
        return tuple(dict.fromkeys(found))
