"""The explanation of a deferred resize: its nomination is the one that the scheduler would write."""

from __future__ import annotations

import pytest

from nominee.scheduler.explanation.document import pod_explanation
from nominee.scheduler.explanation.verdict import explain_resize
from nominee.scheduler.framework.resize_preemption import Flavour, ResizePreemption, Tracking
from nominee.scheduler.framework.types import PodInfo
from tests.scheduler.resizing import full, growing


@pytest.mark.parametrize("is_live", [True, False])
@pytest.mark.parametrize("flavour", list(Flavour))
@pytest.mark.parametrize("tracking", list(Tracking))
def test_a_nomination_is_explained_only_where_it_is_written(
    tracking: Tracking, flavour: Flavour, is_live: bool
) -> None:
    options = ResizePreemption(flavour, tracking)
    bench = full(options)
    bench.cache.update_snapshot(bench.framework.snapshot)
    verdict = explain_resize(
        bench.framework, bench.framework.snapshot, PodInfo(growing()), options, is_live=is_live
    )
    explanation = pod_explanation(verdict)
    preemption = explanation["preemption"]
    assert preemption is not None
    assert preemption["victims"] == ["default/victim"]
    written = bench.attempt().node
    assert explanation["nominatedNodeName"] == {"before": "", "after": written}
    assert written == ("node1" if tracking is Tracking.NOMINATED_NODE_NAME else "")
