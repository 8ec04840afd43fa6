"""The interface of a kind of condition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from google.protobuf.message import Message

from nominee.lab.scenario.fields.declared import Declared
from nominee.lab.scenario.fields.fragments import CONDITION, Fragment
from nominee.lab.scenario.fields.parser import Parser
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.localcluster.cluster import ClusterError
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    # It imports gRPC, which reading a file does not need.
    from nominee.lab.scenario.cluster import ScenarioCluster

JsonObject = Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The evaluation of a condition: the observation, and the first object that has all properties."""

    holds: bool
    text: str
    found: JsonObject | None = None


class Objects(Protocol):
    """The objects of a cluster as its watches show them."""

    def get(self, kind: AnyKind, name: str, namespace: str) -> Message | None:
        """Return an object, or None if there is no such object."""
        ...

    def messages(self, kind: AnyKind, namespace: str = "") -> list[Message]:
        """Return the objects of a kind; "" is all namespaces."""
        ...

    def deletions(self, kind: AnyKind) -> list[tuple[Message, float]]:
        """Return the last state of each deleted object, the latest last, and the time: seconds of the run."""
        ...

    def json(self, kind: AnyKind, message: Message) -> JsonObject:
        """Return an object as JSON."""
        ...

    def evaluate(self, condition: Condition) -> Observed:
        """Evaluate a condition that is about objects only, at most once for each state."""
        ...


class Condition(Declared, ABC):
    """A statement about objects, events or processes that holds or does not hold.

    A kind of conditions is a frozen dataclass of its fields. It defines `is_about_objects`, `watched` and
    `evaluate` if it is about objects, else `probe`.
    """

    __slots__ = ()
    key: ClassVar[str]
    """The field of a file that has such a condition."""
    row: ClassVar[str]
    """Its row in docs/scenarios.md."""

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Json) -> Condition:
        """Return the condition of a field, which the schema accepts; mistakes go to the parser."""
        return cls.read(parser, path, value)

    @abstractmethod
    def describe(self) -> str:
        """Return the condition as a clause."""

    @property
    def parts(self) -> Sequence[Condition]:
        """Return the conditions that this one combines."""
        return ()

    @property
    def is_about_objects(self) -> bool:
        """Return whether the condition needs nothing but watched objects."""
        return False

    def watched(self) -> Sequence[AnyKind]:
        """Return the kinds of objects that it looks at."""
        return ()

    def concerns(self, kind: AnyKind, obj: Message) -> bool:
        """Return whether a change of an object may change the condition, which is about objects."""
        return kind in self.watched()

    def subjects(self, objects: Objects) -> list[str]:
        """Return the objects that it is about, as `Pod default/a`: those that exist, and those that did."""
        return [subject for part in self.parts for subject in part.subjects(objects)]

    def evaluate(self, objects: Objects) -> Observed:
        """Evaluate a condition that is about objects only."""
        raise TypeError(f"{type(self).__name__} is not about objects")

    async def probe(self, cluster: ScenarioCluster) -> Observed:
        """Ask processes. Raises: ClusterError: one does not answer."""
        raise TypeError(f"{type(self).__name__} cannot be asked of a process")

    async def observe(self, objects: Objects, cluster: ScenarioCluster) -> Observed:
        """Evaluate the condition; a process that does not answer is an observation, no error."""
        if self.is_about_objects:
            return objects.evaluate(self)
        try:
            return await self.probe(cluster)
        except ClusterError as error:
            return Observed(holds=False, text=str(error))


class ConditionParser(Parser):
    """Makes conditions of these kinds, by their keys; `otherwise` is in the place of one with a mistake."""

    def __init__(self, kinds: Mapping[str, type[Condition]], otherwise: Condition) -> None:
        super().__init__()
        self._kinds, self._otherwise = kinds, otherwise

    def condition(self, path: FieldPath, value: Mapping[str, Json]) -> Condition:
        """Return the one condition of a mapping; other keys, such as `seconds`, are the caller's."""
        given = [key for key in self._kinds if key in value]
        if len(given) != 1:
            found = f"got {' and '.join(given)}" if given else "got none of them"
            self.fault(path, f"give exactly one of {', '.join(self._kinds)}; {found}")
            return self._otherwise
        return self._kinds[given[0]].parse(self, (*path, given[0]), value[given[0]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination(Condition):
    """Conditions that are combined by `how`, and described with `word` between them."""

    how: ClassVar[Callable[[Iterable[bool]], bool]]
    word: ClassVar[str]

    conditions: Sequence[Condition]

    @classmethod
    def schema(cls) -> Fragment:
        return {
            "type": "array",
            "minItems": 1,
            "items": CONDITION,
            "description": cls.row.replace("a list of conditions", "Conditions") + ".",
        }

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: list[Mapping[str, Json]]) -> Condition:
        return cls(conditions=[parser.condition((*path, i), part) for i, part in enumerate(value)])

    def describe(self) -> str:
        return f" {self.word} ".join(each.describe() for each in self.conditions)

    @property
    def parts(self) -> Sequence[Condition]:
        return self.conditions

    @property
    def is_about_objects(self) -> bool:
        return all(part.is_about_objects for part in self.parts)

    def watched(self) -> Sequence[AnyKind]:
        return [kind for part in self.parts for kind in part.watched()]

    def concerns(self, kind: AnyKind, obj: Message) -> bool:
        return any(part.concerns(kind, obj) for part in self.parts)

    def evaluate(self, objects: Objects) -> Observed:
        return self._combined([part.evaluate(objects) for part in self.parts])

    async def observe(self, objects: Objects, cluster: ScenarioCluster) -> Observed:
        """Evaluate the parts; together, at one state, if all are about objects."""
        if self.is_about_objects:
            return objects.evaluate(self)
        return self._combined([await part.observe(objects, cluster) for part in self.parts])

    def _combined(self, observed: Sequence[Observed]) -> Observed:
        holds = type(self).how([each.holds for each in observed])
        found = next((each.found for each in observed if each.found is not None), None)
        return Observed(holds=holds, text="; ".join(each.text for each in observed), found=found)


def leaves(condition: Condition) -> list[Condition]:
    """Return the conditions without those that combine others."""
    if isinstance(condition, Combination):
        return [leaf for part in condition.parts for leaf in leaves(part)]
    return [condition]
