"""Templates of claims in pods."""

from __future__ import annotations

import pytest

from nominee.apiserver.validation.claims import claim_template
from nominee.machinery.api.pb import core, meta

_SPEC = core.PersistentVolumeClaimSpec(accessModes=["ReadWriteOnce"])
_SPEC.resources.requests["storage"].string = "1Gi"


@pytest.mark.parametrize(
    ("metadata", "problems"),
    [
        (meta.ObjectMeta(labels={"a": "b"}, creationTimestamp=meta.Time()), []),  # as clients in Go send it
        (meta.ObjectMeta(creationTimestamp=meta.Time(seconds=9)), ["t.metadata.creationTimestamp"]),
        (meta.ObjectMeta(name="", uid="u"), ["t.metadata.uID"]),
    ],
)
def test_metadata_that_a_template_may_have(metadata: meta.ObjectMeta, problems: list[str]) -> None:
    template = core.PersistentVolumeClaimTemplate(metadata=metadata, spec=_SPEC)
    assert [each.field for each in claim_template("t", template)] == problems
