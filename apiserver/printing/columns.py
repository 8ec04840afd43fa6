"""The parts of a kind's Table: columns, and a function that makes an object's row.

Source: kube-apiserver 1.36, pkg/printers (TableGenerator, TableColumnDefinition).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from google.protobuf.message import Message

from nominee.apiserver.printing.cells import age
from nominee.machinery.api.objects import metadata_of
from nominee.machinery.wire.scalars import format_time

Cell = str | int | bool
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
    conditions: list[dict[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Columns(Generic[M_contra]):
    """A kind's columns, and its rows: `row(message, now)` with seconds since the epoch."""

    columns: tuple[Column, ...]
    row: Callable[[M_contra, float], Row]


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


def _name_and_age(obj: Message, now: float) -> Row:
    metadata = metadata_of(obj)
    return Row([metadata.name, age(metadata, now)])


def _name_and_creation(obj: Message, now: float) -> Row:
    del now
    metadata = metadata_of(obj)
    return Row([metadata.name, format_time(metadata.creationTimestamp.seconds)])


NAME_AND_AGE: Columns[Message] = Columns((NAME, AGE), _name_and_age)
NAME_AND_CREATION: Columns[Message] = Columns(
    (NAME, Column("Created At", "objectmeta-meta-v1#creationTimestamp", "date")), _name_and_creation
)
"""Of kinds that have no columns of their own upstream."""
