"""The default of a StatefulSet's maxUnavailable comes with MaxUnavailableStatefulSet, on since 1.37."""

from __future__ import annotations

import pytest

from nominee.machinery.api.pb import apps
from nominee.machinery.defaults.workloads import stateful_set
from nominee.machinery.features.gates import Gates, Version


@pytest.mark.parametrize(("minor", "expected"), [(35, False), (36, False), (37, True)])
def test_max_unavailable_has_a_default(minor: int, *, expected: bool) -> None:
    of = apps.StatefulSet()
    stateful_set(of, Gates("apiserver", Version(1, minor)))
    assert of.spec.updateStrategy.rollingUpdate.HasField("maxUnavailable") is expected
