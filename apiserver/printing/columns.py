"""The parts of a kind's Table: columns, and a function that makes an object's row.

Source: kube-apiserver 1.36, pkg/printers (TableGenerator, TableColumnDefinition).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from google.protobuf.message import Message

from nominee.apiserver.printing.cells import age
from nominee.machinery.api.objects import metadata_of
from nominee.machinery.wire.values.scalars import format_time

Cell = str | int | bool
Cells = Sequence[Cell]
Conditions = list[dict[str, str]]
M_contra = TypeVar("M_contra", bound=Message, contravariant=True)


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `described` is `schema#field` of Kubernetes' own schemas, or the description itself."""

    name: str
    described: str
    type: str = "string"
    format: str = ""
    wide: bool = False


@dataclass(slots=True)
class Row:
    """An object's cells in the order of the columns, and the row's conditions (finished pods)."""

    cells: list[Cell]
    conditions: Conditions = field(default_factory=list)


class Columns(Generic[M_contra]):
    """A kind's columns, and its rows.

    `cells(obj, now)` returns an object's cells without those of NAME and AGE; `now` as in `row`.
    """

    def __init__(
        self,
        cells: Callable[[M_contra, float], Cells],
        *columns: Column,
        conditions: Callable[[M_contra], Conditions] | None = None,
    ) -> None:
        self.columns = columns
        self._cells = cells
        self._conditions = conditions

    def row(self, obj: M_contra, now: float) -> Row:
        """Return an object's row; `now` in seconds since the epoch."""
        own = iter(self._cells(obj, now))
        metadata = metadata_of(obj)
        cells = [
            metadata.name if column is NAME else age(metadata, now) if column is AGE else next(own)
            for column in self.columns
        ]
        return Row(cells, self._conditions(obj) if self._conditions is not None else [])


def wide(name: str, described: str) -> Column:
    """Return a column that `kubectl get -o wide` shows."""
    return Column(name, described, wide=True)


NAME = Column("Name", "objectmeta-meta-v1#name", format="name")
AGE = Column("Age", "objectmeta-meta-v1#creationTimestamp")
CONTAINERS = (
    wide("Containers", "Names of each container in the template."),
    wide("Images", "Images referenced by each container in the template."),
)
"""Of workloads; `cells.containers` fills them."""


def _creation(obj: Message, now: float) -> Cells:
    return [format_time(metadata_of(obj).creationTimestamp.seconds)]


NAME_AND_AGE: Columns[Message] = Columns(lambda obj, now: (), NAME, AGE)
NAME_AND_CREATION: Columns[Message] = Columns(
    _creation, NAME, Column("Created At", "objectmeta-meta-v1#creationTimestamp", "date")
)
"""Of kinds that have no columns of their own upstream."""
