"""What the verbs that start and stop processes have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from nominee.lab.scenario.acting.base import (
    DONE,
    Action,
    Performed,
    Phase,
    ProcessView,
    Undoing,
)
from nominee.lab.scenario.acting.errors import StepFailedError
from nominee.lab.scenario.fields import gate_checks
from nominee.lab.scenario.fields.fragments import GATES, VERSION, Fragment, of_component
from nominee.lab.scenario.fields.options import ComponentOptions
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import ConditionParser
from nominee.localcluster.cluster import ClusterError
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage

OPTIONS: Final[Mapping[str, Fragment]] = {
    "emulatedVersion": VERSION,
    "featureGates": GATES,
    "args": {
        "type": "array",
        "items": {"type": "string"},
        "description": 'Options of the process: ["--scan-interval=200ms"].',
    },
    "failpoints": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "Actions of failpoints by name, armed when the process starts.",
    },
}
"""Fields of the steps that start a process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control(Action):
    """A step for a process, by name or as `{component: NAME}`."""

    runs: ClassVar[bool]
    """Whether the process runs afterwards."""
    undone_in: ClassVar[Phase | None] = Phase.PROCESSES

    component: str

    @classmethod
    def schema(cls) -> Fragment:
        return of_component("A component.", {})

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Json, rejected: str) -> Action:
        """Return the step for the process."""
        return cls(component=named(parser, path, value))

    def describe(self) -> str:
        return f"{self.verb} {self.component}"

    @property
    def changes_options(self) -> bool:
        """Return whether the process has other options than those of the cluster afterwards."""
        return False

    async def undo(self, undoing: Undoing) -> None:
        """Let the process run, or not, as `spec.cluster` says, and with its options."""
        if not undoing.is_first("process", self.component):
            return
        if undoing.cluster.component(self.component).stopped:
            await undoing.stage.cluster.stop(self.component, kill=True)
            return
        steps = [
            each for each in undoing.actions if isinstance(each, Control) and each.component == self.component
        ]
        if not steps[-1].runs or any(each.changes_options for each in steps):
            await undoing.stage.cluster.restart(self.component, ComponentOptions(), kill=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch(Control):
    """A step that starts a process, also with other options.

    `rejected`: it must fail with this text in its message.
    """

    runs: ClassVar[bool] = True
    may_be_rejected: ClassVar[bool] = True

    options: ComponentOptions = field(default_factory=ComponentOptions)
    rejected: str = ""

    def describe(self) -> str:
        options = self.options
        parts = [f"version {options.emulated_version}"] if options.emulated_version else []
        parts += [f"{gate}={str(value).lower()}" for gate, value in options.feature_gates.items()]
        parts += options.arguments
        parts += [f"{name}={action}" for name, action in options.failpoints.items()]
        return f"{self.verb} {self.component}" + (f" with {', '.join(parts)}" if parts else "")

    @property
    def changes_options(self) -> bool:
        """Return whether it has options."""
        return self.options != ComponentOptions()

    @abstractmethod
    async def launch(self, stage: Stage) -> None:
        """Start the process. Raises: ClusterError: it is not ready in time."""

    async def perform(self, stage: Stage) -> Performed:
        """Start the process, and check that it fails if it must."""
        if not self.rejected:
            await self.launch(stage)
            return DONE
        try:
            await self.launch(stage)
        except ClusterError as error:
            if self.rejected not in str(error):
                raise StepFailedError(f"it fails with another message: {error}") from None
            return Performed(text="it fails")
        raise StepFailedError(f"{self.component} is ready; expected an error with {self.rejected!r}")


def fields_of(value: Json) -> Mapping[str, Json]:
    """Return the fields of a step for a process."""
    return {"component": value} if isinstance(value, str) else value


def named(parser: ConditionParser, path: FieldPath, value: Json) -> str:
    """Return the name of the process of a step."""
    where = path if isinstance(value, str) else (*path, "component")
    return parser.component(where, fields_of(value)["component"])


def options_of(parser: ConditionParser, path: FieldPath, value: Json, process: str) -> ComponentOptions:
    """Return the options of a step that starts a process."""
    options = parser.component_options(path, fields_of(value), process)
    if process not in parser.programs:
        for below, message in gate_checks.of_step(parser.cluster, process, options):
            parser.fault((*path, *below), message)
    return options


def recorded_options(before: ProcessView, now: ProcessView) -> dict[str, Json]:
    """Return the options with which a process was started that are not those of its last run."""
    options: dict[str, Json] = {}
    if now.emulated_version != before.emulated_version and now.emulated_version:
        options["emulatedVersion"] = now.emulated_version
    # Another version has other defaults.
    usual = _defaults(now.name, now.emulated_version) if "emulatedVersion" in options else before.gates
    gates = {gate: value for gate, value in now.gates.items() if usual.get(gate, value) != value}
    return options | ({"featureGates": gates} if gates else {})


def recorded_target(name: str, options: Mapping[str, Json]) -> Json:
    """Return the recorded field of a step that starts a process."""
    return {"component": name, **options} if options else name


def _defaults(process: str, version: str) -> Mapping[str, bool]:
    """Return the gates of a process at a version, without overrides."""
    return Gates(process.rpartition("-")[0] or process, Version.parse(version)).all()
