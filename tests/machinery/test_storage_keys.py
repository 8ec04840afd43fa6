"""Keys of objects in etcd."""

from __future__ import annotations

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.storage_keys import kind_below, parse_key


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("/registry/pods/default/web", kinds.POD),
        ("/registry/pods/", kinds.POD),
        ("/registry/minions/n1", kinds.NODE),
        ("/registry/services/specs/default/web", kinds.SERVICE),
        ("/registry/services/endpoints/default/web", kinds.ENDPOINTS),
        ("/registry/other/x", None),
        ("\0", None),
    ],
)
def test_a_key_or_prefix_has_the_kind_of_its_objects(key: str, kind: AnyKind | None) -> None:
    assert kind_below(key) is kind


def test_a_key_has_kind_namespace_and_name() -> None:
    assert parse_key("/registry/pods/default/web") == (kinds.POD, "default", "web")
    assert parse_key("/registry/minions/n1") == (kinds.NODE, "", "n1")
    assert parse_key("/registry/pods") == (None, "", "/registry/pods")
