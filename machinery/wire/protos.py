"""Write the .proto files of Kubernetes' messages from the table: `python -m nominee.machinery.wire.protos
proto`.

The files lie where Kubernetes has them (`k8s.io/api/core/v1/generated.proto`); they are committed, and a test
holds them against the table.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from nominee.machinery.wire.schema import Field, Message, messages

HEADER = "// Made by `python -m nominee.machinery.wire.protos` from machinery/wire/table.tsv; do not edit."


def path_of(package: str) -> str:
    """`k8s.io.api.core.v1` is in `k8s.io/api/core/v1/generated.proto`."""
    return "k8s.io/" + package.removeprefix("k8s.io.").replace(".", "/") + "/generated.proto"


def _reference(field_type: str, field: Field) -> str:
    return field_type if field.is_scalar else f".{field_type}"


def _lines(message: Message) -> Iterator[str]:
    yield f"message {message.name} {{"
    for field in sorted(message.fields, key=lambda f: f.number):
        reference = _reference(field.type, field)
        if field.label == "map":
            yield f"  map<string, {reference}> {field.name} = {field.number};"
        else:
            yield f"  {field.label} {reference} {field.name} = {field.number};"
    yield "}"


def render() -> dict[str, str]:
    """Return the text of every file by its path below proto/."""
    by_package: dict[str, list[Message]] = defaultdict(list)
    for message in messages().values():
        by_package[message.package].append(message)
    package_of = {name: message.package for name, message in messages().items()}
    files = {}
    for package, members in by_package.items():
        imports = sorted(
            {
                path_of(package_of[field.type])
                for message in members
                for field in message.fields
                if not field.is_scalar and package_of[field.type] != package
            }
        )
        lines = [
            HEADER,
            'syntax = "proto2";',
            "",
            f"package {package};",
            "",
        ]
        lines += [f'import "{path}";' for path in imports] + ([""] if imports else [])
        for message in sorted(members, key=lambda m: m.name):
            lines += [*_lines(message), ""]
        files[path_of(package)] = "\n".join(lines)
    return files


def main() -> None:
    root = Path(sys.argv[1])
    for path, text in render().items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
