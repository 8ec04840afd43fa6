"""The table of Kubernetes' messages, as data.

`table.tsv` holds one row a field: package, message, field, its name in Go, number, label, type, JSON name,
when JSON writes it, whether Go has a pointer there, and the strategic-merge directive. Everything about the
wire is made from these rows: the .proto files, the JSON codec, presence on the wire and strategic merge.

`json` is `=` where JSON has the field's own name, else the name in JSON; `?` where no name is given, mostly
since the Go type writes its own JSON; `-` as in Go's tag: never in JSON. `when_written` is `omitempty` (not
when empty), `always` (also when empty: Go's tag has no omitempty) or `inline` (an embedded struct: its fields
stand in the JSON of the message that contains it). `go` is `pointer` where Go has a pointer, so that unset
and empty differ. A message without fields has one row without a field.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

TABLE = Path(__file__).with_name("table.tsv")

Label = Literal["optional", "repeated", "map"]
SCALARS = frozenset({"string", "bytes", "bool", "int32", "int64", "double", "float", "uint32", "uint64"})


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message.

    `type` is a scalar name, the full name of a message, or for a map the type of its values (keys are
    strings). `go_name` is the field's name in k8s.io/api (`DNSPolicy`). `json_name` is "" where the Go type
    writes itself (Time, Quantity, ...) or is inlined.
    """

    name: str
    go_name: str
    number: int
    label: Label
    type: str
    json_name: str
    always: bool
    inline: bool
    pointer: bool
    patch_strategies: frozenset[str]
    merge_key: str

    @property
    def is_scalar(self) -> bool:
        return self.type in SCALARS


@dataclass(frozen=True, slots=True)
class Message:
    """One message: its package, short name and fields in the table's order."""

    package: str
    name: str
    fields: tuple[Field, ...]

    @property
    def full_name(self) -> str:
        return f"{self.package}.{self.name}"


def _qualified(package: str, type_name: str) -> str:
    if type_name in SCALARS:
        return type_name
    if type_name.startswith("."):
        return type_name[1:]
    return f"{package}.{type_name}"


def _field(package: str, row: dict[str, str]) -> Field:
    type_name = row["type"]
    if row["label"] == "map":
        type_name = type_name.removeprefix("map<string,").removesuffix(">")
    json_name = row["json"]
    if json_name == "=":
        json_name = row["field"]
    elif json_name in {"?", "-"}:
        json_name = ""
    strategies: frozenset[str] = frozenset()
    merge_key = ""
    for directive in row["patch"].split():
        key, _, value = directive.partition("=")
        if key == "patchStrategy":
            strategies = frozenset(value.split(","))
        elif key == "mergeKey":
            merge_key = value
    label = row["label"]
    assert label in ("optional", "repeated", "map"), row
    return Field(
        name=row["field"],
        go_name=row["go_name"],
        number=int(row["number"]),
        label=label,  # type: ignore[arg-type]  # asserted above
        type=_qualified(package, type_name),
        json_name=json_name,
        always=row["when_written"] == "always",
        inline=row["when_written"] == "inline",
        pointer=row["go"] == "pointer",
        patch_strategies=strategies,
        merge_key=merge_key,
    )


@cache
def messages() -> dict[str, Message]:
    """Return all messages of the table by full name (`k8s.io.api.core.v1.Pod`)."""
    rows: dict[tuple[str, str], list[Field]] = {}
    with TABLE.open(newline="", encoding="utf-8") as table:
        for row in csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE):
            fields = rows.setdefault((row["package"], row["message"]), [])
            if row["field"]:
                fields.append(_field(row["package"], row))
    return {
        f"{package}.{name}": Message(package, name, tuple(fields)) for (package, name), fields in rows.items()
    }
