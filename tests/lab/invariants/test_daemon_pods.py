"""A DaemonSet has one pod on a node, or two where it surges."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.workloads.daemon_pods import DaemonPods
from nominee.machinery.api.pb import apps, core
from nominee.machinery.scheduling.node_affinity import NAME_FIELD
from tests.lab.invariants.histories import BEGIN, History, event, leader, pod, result_of, violations_of

SETTINGS = ComponentSettings(lists_newest=frozenset({"controllers"}))


def agent(
    *, surge: str = "", generation: int = 1, observed: int = 0, strategy: str = "RollingUpdate"
) -> apps.DaemonSet:
    """Return a DaemonSet; its controller has observed a generation."""
    found = apps.DaemonSet()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = "agent", "default", "uid-agent"
    found.metadata.generation = generation
    found.spec.updateStrategy.type = strategy
    limit = found.spec.updateStrategy.rollingUpdate.maxSurge
    if surge.endswith("%"):
        limit.type, limit.strVal = 1, surge
    else:
        limit.intVal = int(surge or 0)
    found.status.observedGeneration = observed
    return found


def on(name: str, *, phase: str = "", deletes_at: float = 0.0, of: str = "uid-agent") -> core.Pod:
    """Return a pod for a node: `n1a` is the pod a for n1."""
    found = pod(name, phase=phase, deletes_at=deletes_at)
    found.metadata.ownerReferences.add(
        apiVersion="apps/v1", kind="DaemonSet", name="agent", uid=of, controller=True
    )
    term = found.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms
    term.add().matchFields.add(key=NAME_FIELD, operator="In", values=[name[:2]])
    return found


def pods(names: str) -> list[core.Pod]:
    return [on(name) for name in names.split()]


def bound(name: str) -> core.Pod:
    found = on(name)
    found.spec.nodeName = name[:2]
    return found


BOTH = "n1a n2a n1b n2b"
"""Two pods on each of two nodes: more than one batch of creations."""


@pytest.mark.parametrize(
    "history",
    [
        History().put(agent(), *pods("n1a n2a n3a")),
        History().put(agent(), on("n1a"), on("n1a", deletes_at=BEGIN + 1000), on("n1b")),
        History().put(agent(), on("n1a"), on("n1a", phase="Failed"), on("n1b")),
        History().put(agent(), on("n1a")).delete(on("n1a")).put(on("n1b")),
        History().put(agent(), on("n1a"), bound("n1a"), on("n2a"), bound("n2a")),
        History().put(agent(surge="1"), *pods(BOTH)),
        History().put(agent(surge="10%"), *pods(BOTH)),
        History().put(agent(surge="1"), *pods("n1a n2a"), agent(generation=2), *pods("n1b n2b")),
        History().put(agent(), on("n1a"), on("n1b", of="uid-other"), on("n2b", of="uid-other")),
        History().put(*pods(BOTH)),
    ],
    ids=[
        "all", "terminating", "failed", "gone", "bound", "surge", "percent", "no longer", "of another",
        "no set",
    ],
)  # fmt: skip
def test_correct_creations(history: History) -> None:
    result = result_of(DaemonPods, history, SETTINGS)
    assert result.violations == ()
    assert result.exceptions == {}


@pytest.mark.parametrize(
    ("history", "count", "most"),
    [
        (History().put(agent(), *pods(f"{BOTH}")), 2, 1),
        (History().put(agent(surge="0%"), *pods(BOTH)), 2, 1),
        (History().put(agent(surge="1", strategy="OnDelete"), *pods(BOTH)), 2, 1),
        (History().put(agent(surge="1"), *pods(f"{BOTH} n1c n2c")), 3, 2),
        (
            History().put(
                agent(surge="1"), *pods("n1a n2a"), agent(generation=2, observed=2), *pods("n1b n2b")
            ),
            2,
            1,
        ),
    ],
    ids=["twice", "0%", "OnDelete", "three", "it surges no longer"],
)
def test_pods_that_were_created_twice(history: History, count: int, most: int) -> None:
    (violation,) = violations_of(DaemonPods, history, SETTINGS)
    assert violation.message == (
        f"DaemonSet default/agent got {count} pods for the node n2, and may have {most}"
    )


def test_exceptions() -> None:
    lost = result_of(DaemonPods, History().put(agent(), *pods("n1a n2a n1b")), SETTINGS)
    assert (lost.violations, lost.exceptions) == ((), {"answers-lost": 1})
    led = History().put(
        leader("m1", "kube-controller-manager"),
        agent(),
        *pods("n1a n2a"),
        leader("m2", "kube-controller-manager"),
        *pods("n1b n2b"),
    )
    assert result_of(DaemonPods, led, SETTINGS).exceptions == {"new-leader": 2}
    stale = result_of(DaemonPods, History().put(agent(), *pods(BOTH)), ComponentSettings())
    assert stale.exceptions == {"answers-lost": 1, "stale-start": 1}


def test_a_creation_with_an_event_had_its_answer() -> None:
    first, second = on("n1a"), on("n1b")

    def created(each: core.Pod) -> core.Event:
        name = each.metadata.name
        found = event(f"e-{name}", "SuccessfulCreate", each, note=f"Created pod: {name}")
        found.involvedObject.kind = "DaemonSet"
        return found

    both = History().put(agent(), on("n2a"), first, created(first), second, created(second))
    (violation,) = violations_of(DaemonPods, both, SETTINGS)
    assert violation.message == "DaemonSet default/agent got 2 pods for the node n1, and may have 1"
    gone = on("n1b", deletes_at=BEGIN + 1000)
    assert violations_of(DaemonPods, both.put(gone).delete(gone), SETTINGS) == [violation]
    one = History().put(agent(), on("n2a"), first, created(first), second)
    assert violations_of(DaemonPods, one, SETTINGS) == []
    assert violations_of(DaemonPods, both, ComponentSettings()) == []


def test_creations_that_failed_again_and_again_may_all_have_been_done() -> None:
    def failed(count: int) -> core.Event:
        found = event("failed", "FailedCreate", on("n1a"), note="Error creating: it is away")
        found.involvedObject.kind, found.involvedObject.name, found.count = "DaemonSet", "agent", count
        return found

    three = History().put(agent(), *pods("n1a n1b n1c n1d"))
    assert len(violations_of(DaemonPods, three, SETTINGS)) == 2
    (violation,) = violations_of(DaemonPods, three.put(failed(1)), SETTINGS)
    assert violation.message == "DaemonSet default/agent got 4 pods for the node n1, and may have 1"
    result = result_of(DaemonPods, three.put(failed(1), failed(2)), SETTINGS)
    assert (result.violations, result.exceptions) == ((), {"answers-lost": 3})


def test_a_released_pod_does_not_count() -> None:
    released = on("n1a")
    del released.metadata.ownerReferences[:]
    result = result_of(DaemonPods, History().put(agent(), on("n1a"), released, on("n1b")), SETTINGS)
    assert (result.violations, result.exceptions) == ((), {})
