"""The default of a StatefulSet's maxUnavailable comes with MaxUnavailableStatefulSet, on since 1.37."""

from __future__ import annotations

import pytest

from nominee.machinery.api.pb import apps
from nominee.machinery.defaults.workloads import stateful_set
from nominee.machinery.features.gates import Gates, Version

GATE = {"MaxUnavailableStatefulSet": True}
OFF = {"MaxUnavailableStatefulSet": False}


@pytest.mark.parametrize(
    ("minor", "gates", "expected"),
    [(35, {}, False), (36, {}, False), (37, {}, True), (34, GATE, True), (36, GATE, True), (37, OFF, False)],
)
def test_max_unavailable_has_a_default(minor: int, gates: dict[str, bool], *, expected: bool) -> None:
    of = apps.StatefulSet()
    stateful_set(of, Gates("apiserver", Version(1, minor), gates))
    assert of.spec.updateStrategy.rollingUpdate.HasField("maxUnavailable") is expected
