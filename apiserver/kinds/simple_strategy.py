"""Strategies made of functions, for kinds whose rules are validation alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import TypeVar

from google.protobuf.message import Message

from nominee.apiserver.kinds.strategy import Environment, StatusStrategy, Strategy, no_change
from nominee.apiserver.validation import names
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.kinds import Kind

M = TypeVar("M", bound=Message)


def _no_warnings(_new: Message, _old: Message | None) -> Iterable[str]:
    return ()


class UpdateCheck(Enum):
    """The parts of an updated object that are checked, besides the change: as upstream orders the errors."""

    NOTHING = auto()
    SPEC = auto()
    OBJECT = auto()
    """Metadata and spec, after the change."""
    OBJECT_FIRST = auto()


class SimpleStrategy(Strategy[M]):
    """Validation by functions: `check` of the object, `change` and `status` of (new, old).

    `updates` says how much of `check` an update repeats; `warnings` are of (new, old), None on create.
    `subresources` replace that of `status`.
    """

    def __init__(
        self,
        kind: Kind[M],
        check: Callable[[M], Iterable[Cause]],
        change: Callable[[M, M], Iterable[Cause]] = no_change,
        *,
        status: Callable[[M, M], Iterable[Cause]] = no_change,
        status_resets_metadata: bool = False,
        name_rule: Callable[[str], names.Problems] = names.dns_subdomain,
        counts_generation: bool = False,
        updates: UpdateCheck = UpdateCheck.SPEC,
        warnings: Callable[[M, M | None], Iterable[str]] = _no_warnings,
        subresources: Mapping[str, Strategy[M]] | None = None,
    ) -> None:
        if subresources is None and "status" in kind.subresources:
            subresources = {"status": StatusStrategy(kind, status, reset_metadata=status_resets_metadata)}
        super().__init__(kind, subresources)
        self.counts_generation = counts_generation
        self._check = check
        self._change = change
        self._name_rule = name_rule
        self._updates = updates
        self._warnings = warnings

    def name_rule(self, name: str) -> names.Problems:
        """Return the problems of a name, by the given rule."""
        return self._name_rule(name)

    def validate(self, new: M, env: Environment) -> list[Cause]:
        """Check metadata and the whole object."""
        return [*self.validate_metadata(new), *self._check(new)]

    def validate_update(self, new: M, old: M, env: Environment) -> list[Cause]:
        """Check the change of the metadata and of the object, and the parts that `updates` names."""
        changed = [*super().validate_update(new, old, env), *self._change(new, old)]
        match self._updates:
            case UpdateCheck.NOTHING:
                return changed
            case UpdateCheck.SPEC:
                return [*changed, *self._check(new)]
            case UpdateCheck.OBJECT:
                return [*changed, *self.validate(new, env)]
            case UpdateCheck.OBJECT_FIRST:
                return [*self.validate(new, env), *changed]

    def warnings(self, new: M, old: M | None) -> Sequence[str]:
        """Return the given warnings."""
        return tuple(self._warnings(new, old))
