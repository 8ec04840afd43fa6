"""Fields that an endpoint does not change, so that no writer gets to own them.

A kind's strategies name them (`reset_fields`).

Source: kube-apiserver 1.36, GetResetFields and GetResetFieldsFilter of the strategies in pkg/registry.
"""

from __future__ import annotations

from functools import cache

from nominee.apiserver.managed_fields.fields.field_set import FieldSet
from nominee.apiserver.managed_fields.fields.paths import field
from nominee.apiserver.managed_fields.merge.merge_engine import Keep


@cache
def keep(reset_fields: tuple[str, ...]) -> Keep:
    """Return a function that removes the fields at dotted paths (`metadata.labels`) from a set.

    Members below them are removed, too.
    """
    if not reset_fields:
        return _everything
    reset = FieldSet.of(*(tuple(field(name) for name in path.split(".")) for path in reset_fields))
    return lambda found: found.without_trees(reset)


def _everything(found: FieldSet) -> FieldSet:
    return found
