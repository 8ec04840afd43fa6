"""`nominee explain` gives the verdicts that were recorded from kube-scheduler 1.36.2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from nominee.explain.explainer import Setup, explain_pods
from nominee.explain.files import ClusterFile
from nominee.machinery.features.gates import Version
from nominee.machinery.runtime.clock import FakeClock
from tests.scheduler.golden import NOW_SECONDS
from tests.scheduler.recorded_verdicts import in_recorded_form, recorded
from tests.support.recordings import read

CASES = read("scheduler.jsonl")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_verdict(case: Mapping[str, Any]) -> None:
    file = ClusterFile(case["name"], case["objects"], case["pod"], case["featureGates"])
    cluster = Setup(version=Version(1, 36)).build(file, FakeClock(NOW_SECONDS))
    (explanation,) = explain_pods(cluster, file.pod, name=file.name)
    assert (explanation.get("cluster"), explanation["omittedNodes"]) == (case["name"], 0)
    assert in_recorded_form(explanation) == recorded(case)
    keeps = case["extra"].get("keepsNominatedNode")
    if keeps is not None:
        nomination, preemption = explanation["nominatedNodeName"], explanation["preemption"]
        assert preemption is not None
        wanted = nomination["before"] if keeps else preemption["nominatedNode"]
        assert nomination["after"] == wanted
