"""When the processes of a cluster at rest are restarted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from nominee.lab.chaos import restarting
from nominee.lab.chaos.rest.losses import NOTHING, Losses
from nominee.lab.chaos.rest.state import Expectations, Finding
from nominee.lab.history.revision import Revision
from tests.lab.invariants.histories import History, lease, pod

AFTER = "after all processes were restarted"
DUE_SECONDS = 30.0
RECHECKED_SECONDS = 290.0


class Cluster:
    """A cluster whose objects are replaced each time it is looked at, until the last ones stay."""

    def __init__(self, names: Sequence[str], revisions: Sequence[Revision] = ()) -> None:
        self._names, self._revisions = list(names), revisions
        self.clock = self
        self.slept: list[float] = []
        self.crashed = False

    async def sleep(self, seconds: float) -> None:
        if not self.crashed:
            self.slept.append(seconds)

    async def look(self) -> str:
        return self._names.pop(0) if len(self._names) > 1 else self._names[0]

    def holdings(self) -> dict[str, Any]:
        return {}

    async def history(self) -> Sequence[Revision]:
        return self._revisions

    def now(self) -> float:
        return self._revisions[-1].time if self._revisions else 0.0

    async def crash_all(self) -> None:
        assert self.slept.pop() == restarting.BETWEEN_SECONDS  # between the looks at what is held
        self.crashed = True


async def restarted(
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    *,
    waited: bool = False,
    lost: Losses = NOTHING,
) -> str:
    """Return the changes by a restart of a cluster; its rules have no finding, perhaps after a while."""

    async def outstanding(*_: object) -> tuple[str, bool]:
        return "", waited

    monkeypatch.setattr(restarting, "outstanding", outstanding)
    monkeypatch.setattr(restarting, "observe", lambda *_: cluster.look())
    monkeypatch.setattr(restarting, "facts", lambda name: {(name, "uid"): frozenset[str]()})
    monkeypatch.setattr(restarting, "has_deferred_resizes", lambda name: name == "deferred")
    monkeypatch.setattr(restarting, "waits_for_flush", lambda name: name == "waits")
    monkeypatch.setattr(restarting, "has_unwritten_attempts", lambda name: name == "unwritten")
    monkeypatch.setattr(restarting, "runs_on", lambda name: name == "runs on")
    monkeypatch.setattr(restarting, "has_back_offs", lambda name: name == "backs off")
    monkeypatch.setattr(restarting, "has_drains", lambda name: name == "drains")
    monkeypatch.setattr(restarting, "has_failing_jobs", lambda name: name == "failing")
    monkeypatch.setattr(restarting, "recheck_seconds", lambda name, _: RECHECKED_SECONDS * (name == "cached"))
    monkeypatch.setattr(restarting, "has_refused_pods", lambda name: name.startswith("refused"))
    monkeypatch.setattr(restarting, "has_refused_jobs", lambda name: name == "refused job")
    monkeypatch.setattr(restarting, "due_seconds", lambda name, _: DUE_SECONDS if name == "due" else 0.0)
    monkeypatch.setattr(restarting, "losses_of", lambda _: lost)
    given: Any = cluster
    return await restarting.changed_by_restart(given, Expectations())


@pytest.mark.parametrize(
    ("waited", "names", "slept", "found"),
    [
        (False, ["a"], 0, ""),
        (True, ["a"], 1, ""),
        (True, ["a", "b", "c"], 3, ""),
        (False, ["a", "b"], 0, f"a is removed {AFTER}; b is created {AFTER}"),
    ],
    ids=["at rest", "just come to rest", "what was waited for has consequences", "changed by the restart"],
)
async def test_processes_are_restarted_when_nothing_changes(
    waited: bool, names: Sequence[str], slept: int, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(names)
    assert await restarted(cluster, monkeypatch, waited=waited) == found
    assert cluster.slept == [restarting.STEADY_SECONDS] * slept


@pytest.mark.parametrize(
    ("history", "slept"),
    [
        (History().put(pod("p")).wait(10).put(lease("n1")), 1),  # as when a call has hung
        (History().put(pod("p")).wait(13).put(lease("n1")), 0),
        (History().put(lease("n1")), 0),
    ],
    ids=["a pod has changed", "it was earlier", "a lease is renewed"],
)
async def test_what_follows_a_late_change_is_waited_for(
    history: History, slept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(["a"], history.revisions)
    assert await restarted(cluster, monkeypatch) == ""
    assert cluster.slept == [restarting.STEADY_SECONDS] * slept


@pytest.mark.parametrize("state", ["runs on", "backs off"])
async def test_a_cluster_that_goes_on_or_whose_containers_start_with_their_kubelet_is_not_restarted(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster([state])
    assert await restarted(cluster, monkeypatch) == ""
    assert not cluster.crashed


@pytest.mark.parametrize("state", ["deferred", "refused"])
async def test_what_is_tried_each_half_minute_is_tried_before_the_restart(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster([state, "done"])
    assert await restarted(cluster, monkeypatch) == ""
    assert cluster.slept == [restarting.RESTARTED_SECONDS, restarting.STEADY_SECONDS]


async def test_a_job_whose_pods_were_refused_asks_again_before_the_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(["refused job", "done"])
    assert await restarted(cluster, monkeypatch) == ""
    assert cluster.slept == [restarting.ASKED_SECONDS, restarting.STEADY_SECONDS]


async def test_a_pod_that_waits_for_the_flush_is_tried_before_the_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(["waits", "replaced", "bound"])
    assert await restarted(cluster, monkeypatch) == ""
    assert cluster.slept == [restarting.FLUSHED_SECONDS, *[restarting.STEADY_SECONDS] * 2]


@pytest.mark.parametrize("times", [1, 2])
async def test_an_attempt_that_could_not_be_written_is_repeated_before_the_restart(
    times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state is looked at three times: twice until nothing changes, and then."""
    cluster = Cluster(["unwritten"] * (3 * times - 2) + ["written"])
    assert await restarted(cluster, monkeypatch) == ""
    assert cluster.slept.count(restarting.FLUSHED_SECONDS) == times


async def test_a_drain_that_the_flush_began_ends_before_the_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(["waits", "drains", "drains", "drains", "a"])
    assert await restarted(cluster, monkeypatch) == ""
    steady = restarting.STEADY_SECONDS
    assert cluster.slept == [restarting.FLUSHED_SECONDS, steady, restarting.DRAINED_SECONDS, steady]


async def test_a_pod_that_waits_on_after_the_flush_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(["waits"])
    assert await restarted(cluster, monkeypatch) == ""
    assert cluster.slept == [restarting.FLUSHED_SECONDS, restarting.STEADY_SECONDS]


async def test_a_drain_that_a_budget_refuses_ends_before_the_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(["drains", "a"])
    assert await restarted(cluster, monkeypatch) == ""
    assert cluster.slept == [restarting.DRAINED_SECONDS, restarting.STEADY_SECONDS]


async def test_a_node_is_looked_at_again_before_the_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(["cached", "a"])
    assert await restarted(cluster, monkeypatch) == ""
    assert cluster.slept == [RECHECKED_SECONDS, restarting.STEADY_SECONDS]


async def test_a_job_replaces_its_pods_before_the_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(["failing", "a"])
    assert await restarted(cluster, monkeypatch) == ""
    assert cluster.slept == [restarting.REPLACED_SECONDS, restarting.STEADY_SECONDS]


async def test_what_time_alone_changes_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(["due", "ended"])
    assert await restarted(cluster, monkeypatch) == ""
    assert cluster.slept == [DUE_SECONDS, restarting.STEADY_SECONDS]


async def test_what_was_due_may_be_retried_before_the_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(["due", "refused", "refused", "refused", "done"])
    assert await restarted(cluster, monkeypatch) == ""
    due, tried, steady = DUE_SECONDS, restarting.RESTARTED_SECONDS, restarting.STEADY_SECONDS
    assert cluster.slept == [due, steady, tried, steady]


@pytest.mark.parametrize(
    ("lost", "found"),
    [
        (NOTHING, "scheduler kept one; kubelet kept one"),
        (Losses(delays=True), "kubelet kept one"),
    ],
)
async def test_the_memory_of_processes_that_may_forget_is_left_out(
    lost: Losses, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    freed = [Finding(name, "kept one") for name in ("scheduler", "kubelet")]
    monkeypatch.setattr(restarting, "freed_by_restart", lambda *_: freed)
    assert await restarted(Cluster(["a"]), monkeypatch, lost=lost) == found


@pytest.mark.parametrize(
    ("looks", "found", "slept"),
    [
        ([[]], "", ()),
        ([["a"], []], "", (60.0,)),
        ([["a"], ["b"]], "", (60.0,)),
        ([["a"], ["a"], []], "", (60.0, 600.0)),
        ([["a", "b"], ["a"], ["a", "b"]], "a kept one", (60.0, 600.0)),
    ],
)
async def test_entries_of_objects_that_are_gone_have_some_time(
    looks: list[list[str]], found: str, slept: Sequence[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = list(looks)
    monkeypatch.setattr(restarting, "of_gone", lambda _: [Finding(name, "kept one") for name in left.pop(0)])
    cluster = Cluster(["a"])
    assert await restarted(cluster, monkeypatch) == found
    assert tuple(cluster.slept) == slept
