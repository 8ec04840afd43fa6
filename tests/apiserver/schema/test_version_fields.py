"""The wire table and the schemas of the releases."""

from __future__ import annotations

from nominee.apiserver.schema import releases
from nominee.machinery.features.gates import Version
from nominee.machinery.wire.schema import messages


def test_every_field_of_the_table_is_in_a_schema() -> None:
    """docs/changing.md says so: an older emulated version drops each field without code of its own."""
    properties: dict[str, set[str]] = {}
    for version in (Version(1, 36), Version(1, 37)):
        definitions = releases.definitions(version)
        assert definitions is not None
        for name, schema in definitions.items():
            properties.setdefault(name, set()).update(schema.get("properties", ()))
    absent = [
        f"{name}.{field.json_name}"
        for name, message in messages().items()
        if (known := properties.get(f"io.k8s.{name.removeprefix('k8s.io.')}")) is not None
        for field in message.fields
        if field.json_name and not field.inline and field.json_name not in known
    ]
    assert absent == []
    assert "podPreemptionPolicy" in properties["io.k8s.api.core.v1.NodeSpec"]
