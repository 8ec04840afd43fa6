"""What a verb of steps must have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final

from nominee.lab.scenario.fields.declared import Declared
from nominee.lab.scenario.fields.options import ClusterOptions
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import Condition, ConditionParser, JsonObject
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    # Imports gRPC, which reading a file does not need.
    from nominee.lab.scenario.acting.stage import Stage

WAIT_SECONDS: Final = 30.0
"""The limit of a step that names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Performed:
    """The result of a step: what was observed, and the object that a condition found."""

    text: str = ""
    found: JsonObject | None = None


DONE: Final = Performed()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessView:
    """One process: the supervisor's state, and what it runs with. `failpoints` are the armed ones."""

    name: str
    state: str
    pid: int
    last_exit: str = ""
    emulated_version: str = ""
    gates: Mapping[str, bool] = field(default_factory=dict)
    failpoints: Mapping[str, str] = field(default_factory=dict)
    faults: Sequence[tuple[str, str, str, str]] = ()

    def since(self, before: ProcessView) -> ProcessView:
        """Return the state before this one of the same run: nothing is armed at the start of a run."""
        if before.pid == self.pid and self.state == "ready":
            return before
        return ProcessView(name=self.name, state=self.state, pid=self.pid)


class Phase(Enum):
    """The order in which actions are undone after a scenario."""

    FAULTS = "faults and clocks"
    PROCESSES = "processes that run otherwise than at first"
    FAILPOINTS = "failpoints, when all processes are ready"
    OBJECTS = "objects"
    NODES = "nodes of the cloud"


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoing:
    """The environment in which actions are undone: stage, the cluster as it was, the scenario's actions."""

    stage: Stage
    cluster: ClusterOptions
    actions: Sequence[Action]
    _undone: set[Hashable] = field(default_factory=set)

    def is_first(self, *key: Hashable) -> bool:
        """Return whether no action has been undone with this key, and keep the key."""
        is_new = key not in self._undone
        self._undone.add(key)
        return is_new


class Action(Declared, ABC):
    """An action of a step. A verb is a frozen dataclass of its fields."""

    __slots__ = ()
    verb: ClassVar[str]
    """The field of a step that has such an action."""
    row: ClassVar[str]
    """Its row in docs/scenarios.md."""
    may_be_rejected: ClassVar[bool] = False
    """Whether a step can state the error with which it must fail."""
    is_check: ClassVar[bool] = False
    is_wait: ClassVar[bool] = False
    """Whether it only prepares the next step."""
    undone_in: ClassVar[Phase | None] = None
    """When `undo` is called; None if there is nothing to undo."""

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Json, rejected: str) -> Action:
        """Return the action of a field, which the schema accepts; mistakes go to the parser.

        `rejected` is a text of the error with which it must fail, or "".
        """
        return cls.read(parser, path, value, **({"rejected": rejected} if cls.may_be_rejected else {}))

    @abstractmethod
    def describe(self) -> str:
        """Return the action as a sentence."""

    @abstractmethod
    async def perform(self, stage: Stage) -> Performed:
        """Perform the action.

        Raises:
            StepFailedError: the result is not the stated one.
            StatusError, ClusterError: the cluster refused.
        """

    @property
    def conditions(self) -> Sequence[Condition]:
        """Return the conditions that it looks at."""
        return ()

    @property
    def finds_object(self) -> bool:
        """Return whether `perform` returns an object, of which a step can save values."""
        return False

    async def undo(self, undoing: Undoing) -> None:
        """Restore what the action changed in the cluster, for another scenario.

        Raises:
            StepFailedError, StatusError, ClusterError: it cannot be restored.
        """
        raise NotImplementedError(f"{self.verb} has a phase, but not what is undone in it")

    @classmethod
    def record(cls, before: ProcessView, now: ProcessView) -> list[JsonObject]:
        """Return the steps with this verb that led from one state of a process to another."""
        return []
