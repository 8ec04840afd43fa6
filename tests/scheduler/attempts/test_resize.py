"""The scheduling cycle of deferred resizes: each test names the section of KEP-5836 that it checks.

The table of who is evicted is that of kube-scheduler 1.37's integration tests, for both flavours.
"""

from __future__ import annotations

from typing import Any

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import policy, workloads
from nominee.machinery.wire import codec
from nominee.scheduler.attempts.resize import SKIPPED_PLUGINS
from nominee.scheduler.framework.api.deferred_resize import Fit, ResizePreemption, Tracking
from nominee.scheduler.framework.interface import Code, PreFilterPlugin, Status
from nominee.scheduler.plugins import registry
from tests.scheduler.resizing import (
    DISABLED,
    FITS,
    FLAVOURS,
    HIGH,
    KEP,
    LOW,
    SHIPPED,
    Bench,
    Objects,
    full,
    growing,
    node,
    pod,
    settled,
)

# ---- "Processing Deferred Resizes in the Scheduling Cycle" ----

CYCLES = {
    "single victim": ([pod("v1", "200m")], {}, (), ("v1",)),
    "two victims": ([pod("v1", "100m"), pod("v2", "100m")], {}, (), ("v1", "v2")),
    "policy Never": ([pod("v1", "200m")], {"preemptionPolicy": "Never"}, (), ()),
    "fits": ([], {}, (), ()),
    "node policy": ([pod("v1", "200m")], {}, ("test-operator",), ()),
    "equal priority": ([pod("v1", "200m", priority=HIGH)], {}, (), ()),
    "larger than the node": ([pod("v1", "200m")], {"cpu": "301m"}, (), ()),
    "as many as needed": ([pod("v1", "100m"), pod("v2", "100m")], {"cpu": "200m"}, (), ("v2",)),
    "the least important": ([pod("v1", "100m", priority=1), pod("v2", "100m")], {"cpu": "200m"}, (), ("v1",)),
}  # fmt: skip


@FLAVOURS
@pytest.mark.parametrize("case", CYCLES)
def test_who_is_evicted(options: ResizePreemption, case: str) -> None:
    """ "Summary of Scheduling Cycle Flow", "Preemption Policies", "Pod Priority, ..."."""
    others, changes, owners, victims = CYCLES[case]
    bench = Bench(options)
    bench.put(node("node1", "300m", owners=owners), node("node2", "500m"), *others)
    bench.put(growing(**{"cpu": "300m", **changes}))
    if owners and options is KEP:
        assert bench.place("growing") == ""  # the scheduler reads the node itself
        return
    found = bench.attempt()
    assert found.victims == victims
    assert found.node == ""
    assert bench.place("growing") == "unschedulable"
    assert bench.queue.nominator.node_of("uid-growing") == ""


def test_messages_of_the_kep() -> None:
    """ "Handling Node Evaluation Results": a parked resize is rejected for good, so nothing is evicted."""
    bench = full()
    found = bench.attempt()
    others = "1 node(s) didn't satisfy plugin(s) [NodeName]"
    assert found.message == f"0/2 nodes are available: 1 Insufficient cpu, {others}."
    assert found.rejectors == {"NodeResourcesFit"}
    bench.remove("victim")
    assert bench.wakes("growing")
    parked = bench.attempt()
    assert parked.message == (
        f"0/2 nodes are available: {others}, 1 {FITS}. preemption: 0/2 nodes are available:"
        " 2 Preemption is not helpful for scheduling."
    )
    assert parked.victims == ()
    assert parked.rejectors == {"NodeResourcesFit"}
    assert bench.place("growing") == "unschedulable"


def test_messages_of_1_37() -> None:
    """Kubernetes 1.37: Permit parks the resize; a Filter rejects the node with a policy."""
    bench = full(SHIPPED)
    bench.remove("victim")
    found = bench.attempt()
    assert found.message == f"0/1 nodes are available: 1 {FITS}."
    assert found.rejectors == {"DeferredPodScheduling"}
    bench.put(node("node1", "200m", owners=("a.io/b",)), settled())
    bench.put(growing())
    found = bench.attempt()
    assert found.message.startswith(
        f"0/2 nodes are available: 1 {DISABLED}, 1 node(s) didn't satisfy plugin(s) [NodeName]."
    )
    assert found.victims == ()
    assert found.rejectors == {"DeferredPodScheduling"}


@FLAVOURS
def test_only_the_pods_own_node_is_considered(options: ResizePreemption) -> None:
    """ "NodeName Plugin: Node Restriction via the PreFilter Phase": node2 has room, node3 cheap victims."""
    bench = Bench(options)
    bench.put(node("node1", "300m"), node("node2", "9"), node("node3", "300m"))
    bench.put(pod("cheap", "300m", on="node3", priority=-1), pod("own", "200m", priority=50), growing())
    assert bench.attempt().victims == ("own",)


@FLAVOURS
def test_a_pod_without_its_node_waits_for_it(options: ResizePreemption) -> None:
    bench = Bench(options)
    bench.put(node("node2", "9"), growing())
    found = bench.attempt()
    assert found.message.startswith("0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeName].")
    bench.put(node("node3", "9"))
    assert not bench.wakes("growing")
    bench.put(node("node1", "300m"))
    assert bench.wakes("growing")


@FLAVOURS
def test_other_constraints_are_bypassed(options: ResizePreemption) -> None:
    """Bypassing irrelevant constraints: taints, cordons, selectors, spreading, ports, anti-affinity."""
    constrained: dict[str, Any] = {
        "nodeSelector": {"no": "such"},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": {"matchLabels": {"a": "b"}}}
        ],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"x": "y"}}}]}},
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}],
    }  # fmt: skip
    bench = Bench(options)
    taints = [{"key": "k", "effect": "NoExecute"}]
    bench.put(node("node1", "300m", unschedulable=True, taints=taints), pod("victim", "200m"))
    bench.put(pod("enemy", "0", labels={"x": "y"}, priority=HIGH))
    bench.put(growing(**constrained))
    assert bench.attempt().victims == ("victim",)


def test_a_resize_runs_the_plugins_that_do_not_decide_only_where_a_pod_may_run() -> None:
    assert set(registry.IN_TREE) >= SKIPPED_PLUGINS
    assert set(registry.IN_TREE) - SKIPPED_PLUGINS == {
        "SchedulingGates", "PrioritySort", "NodeName", "NodeResourcesFit", "DeferredPodScheduling",
        "DefaultPreemption", "DefaultBinder",
    }  # fmt: skip


def test_a_plugin_from_outside_takes_part_unless_it_says_otherwise() -> None:
    """ "Processing Deferred Resizes in the Scheduling Cycle": authors are advised to adapt their plugins."""

    class Refuses(PreFilterPlugin):
        name = "Refuses"

        def pre_filter(self, state: object, pod: object, snapshot: object) -> tuple[None, Status]:
            return None, Status(Code.UnschedulableAndUnresolvable, ("never",))

    class Aligned(Refuses):
        skips_deferred_resizes = True

    for plugin, victims in ((Refuses, ()), (Aligned, ("victim",))):
        bench = Bench(KEP, plugins={"Refuses": plugin})
        bench.put(node("node1", "300m"), pod("victim", "200m"), growing())
        assert bench.attempt().victims == victims


@FLAVOURS
def test_the_pod_is_not_counted_twice(options: ResizePreemption) -> None:
    """ "NodeResourcesFit Plugin: ...": requests and the number of pods."""
    bench = Bench(options)
    bench.put(node("node1", "400m", pods=2), pod("other", "100m"), growing())
    assert FITS in bench.attempt().message


@FLAVOURS
@pytest.mark.parametrize(("queued", "cached"), [("300m", "200m"), ("200m", "300m")])
def test_the_larger_request_of_queue_and_cache_counts(
    options: ResizePreemption, queued: str, cached: str
) -> None:
    """ "NodeResourcesFit Plugin: ...": a race lets the two differ."""
    for capacity, fits in (("400m", False), ("500m", True)):
        bench = Bench(options)
        bench.put(node("node1", capacity), pod("other", "200m"), growing(queued))
        bench.cache.update_pod(bench._info(growing(cached)))
        found = bench.attempt()
        assert (FITS in found.message) == fits
        assert found.victims == (() if fits else ("other",))


@pytest.mark.parametrize(("fit", "victims"), [(Fit.SCHEDULER, ("p2", "p3", "p4")), (Fit.KUBELET, ("p4",))])
def test_the_example_of_additional_preemption(fit: Fit, victims: tuple[str, ...]) -> None:
    """ "Risk of Additional Preemption": four deferred pods, X = 1 cpu."""
    bench = Bench(ResizePreemption(fit=fit))
    bench.put(node("node1", "2"))
    for name in ("p2", "p3", "p4"):
        bench.put(pod(name, "2", allocated="500m", deferred=True))
    bench.put(pod("p1", "1", allocated="500m", deferred=True, priority=HIGH))
    found = bench.attempt()
    assert (found.pod, found.victims) == ("p1", victims)


def test_a_new_pod_counts_what_others_desire_under_either_fit() -> None:
    """ "Risk of Additional Preemption": the behaviour for new pods stays."""
    bench = Bench(ResizePreemption(fit=Fit.KUBELET))
    bench.put(node("node1", "1"), pod("p1", "1", allocated="500m", deferred=True, priority=HIGH))
    bench.put(pod("new", "500m", on="", priority=HIGH + 1, preemptionPolicy="Never"))
    assert "Insufficient cpu" in bench.attempt().message


# ---- "Pod Priority, Graceful Termination, and Pod Disruption Budget" ----


def budget_of(labels: dict[str, str]) -> Objects:
    """A budget that allows no disruption of the pods with these labels."""
    metadata, spec = {"name": "b", "namespace": "default"}, {"selector": {"matchLabels": labels}}
    return Objects(codec.from_json(policy.PodDisruptionBudget, {"metadata": metadata, "spec": spec}))


def test_a_budget_is_kept_where_another_victim_will_do() -> None:
    """PodDisruptionBudget is supported, but not guaranteed."""
    pdb = budget_of({"a": "b"})
    protected = pod("protected", "100m", priority=1, labels={"a": "b"})
    for cpu, victims in (("200m", ("free",)), ("300m", ("free", "protected"))):
        bench = Bench(listers={kinds.POD_DISRUPTION_BUDGET: pdb})
        bench.put(node("node1", "300m"), protected, pod("free", "100m", priority=50), growing(cpu))
        assert bench.attempt().victims == victims


# ---- "Scheduler Resource Reservation" ----


@FLAVOURS
def test_the_room_of_a_parked_resize_is_reserved(options: ResizePreemption) -> None:
    """What the resize desires counts before its kubelet has done it: a new pod does not get the room."""
    bench = Bench(options)
    bench.put(node("node1", "300m"), pod("victim", "200m"), growing())
    assert bench.attempt().victims == ("victim",)
    bench.remove("victim")
    bench.put(pod("new", "100m", on="", priority=HIGH + 1, preemptionPolicy="Never"))
    found = bench.attempt()
    assert (found.pod, found.node) == ("new", "")
    assert "Insufficient cpu" in found.message


# ---- "Reconsideration Race Conditions" ----


def racing(options: ResizePreemption = KEP) -> Bench:
    """A has evicted B for its resize, and is parked while C wants the room, too."""
    bench = Bench(options)
    bench.put(node("node1", "500m"), pod("b", "200m"))
    bench.put(pod("c", "100m", priority=HIGH + 1), growing("400m", allocated="200m"))
    assert bench.attempt().victims == ("b",)
    bench.remove("b")
    assert bench.wakes("growing")
    assert FITS in bench.attempt().message
    return bench


@FLAVOURS
def test_race_a_is_resized(options: ResizePreemption) -> None:
    bench = racing(options)
    bench.put(settled("400m"))
    assert bench.place("growing") == ""


def test_race_c_is_resized() -> None:
    """C's request wakes A, which finds no room and preempts again; it stays queued until it is resized."""
    bench = racing()
    bench.put(pod("d", "0", priority=1))
    bench.put(pod("c", "200m", allocated="100m", priority=HIGH + 1))
    assert bench.wakes("growing")
    assert "Insufficient cpu" in bench.attempt().message
    bench.put(pod("c", "200m", priority=HIGH + 1))
    assert bench.place("growing") == "unschedulable"


def test_race_c_is_resized_in_1_37() -> None:
    """Permit's rejection has DeferredPodScheduling's events only: A waits for the flush after 5 minutes."""
    bench = racing(SHIPPED)
    bench.put(pod("c", "200m", allocated="100m", priority=HIGH + 1))
    assert not bench.wakes("growing")
    bench.now += 301
    bench.queue.flush_unschedulable(bench.now)
    assert bench.place("growing") == "active"
    assert "Insufficient cpu" in bench.attempt().message


@FLAVOURS
def test_race_both_are_resized(options: ResizePreemption) -> None:
    bench = racing(options)
    bench.put(pod("c", "100m", priority=HIGH + 1), settled("400m"))
    assert bench.place("growing") == ""
    assert bench.queue.pop() is None


# ---- "Scope of Interaction with Workload-Aware Preemption" ----

WORKLOADS = {"GenericWorkload": True}
MEMBER: dict[str, Any] = {"schedulingGroup": {"podGroupName": "w"}}


def group_of(mode: str = "PodGroup", **spec: Any) -> Objects:
    """The PodGroup `w`."""
    spec["disruptionMode"] = mode
    metadata = {"name": "w", "namespace": "default"}
    return Objects(codec.from_json(workloads.PodGroup, {"metadata": metadata, "spec": spec}))


def test_a_member_of_a_gang_is_tried_alone() -> None:
    """Queueing Behavior for Group Members: neither its group's absence nor its size gates it."""
    bench = Bench(gates=WORKLOADS)
    group: dict[str, Any] = {"schedulingGroup": {"podGroupName": "gang"}}
    bench.put(node("node1", "300m"), pod("victim", "200m"), growing(**group))
    bench.put(pod("mate", "100m", on="", priority=HIGH, **group))
    assert bench.place("growing") == "active"
    assert bench.attempt().victims == ("victim",)


@pytest.mark.parametrize(
    ("mode", "mate_priority", "victims"),
    [
        ("PodGroup", LOW, ("far", "near", "victim")),
        ("Pod", LOW, ("victim",)),
        ("PodGroup", HIGH, ()),  # the workload does not have a lower priority
    ],
)
def test_a_victim_takes_its_group_with_it(mode: str, mate_priority: int, victims: tuple[str, ...]) -> None:
    """The selected victim pod is part of a workload, with members on other nodes."""
    bench = Bench(gates=WORKLOADS, listers={kinds.POD_GROUP: group_of(mode)})
    bench.put(node("node1", "400m"), node("node2", "1"), pod("victim", "200m", **MEMBER))
    bench.put(pod("near", "0", priority=LOW + 1, **MEMBER))
    bench.put(pod("far", "100m", on="node2", priority=mate_priority, **MEMBER))
    bench.put(pod("bystander", "100m", on="node2"), growing())
    assert bench.attempt().victims == victims


@pytest.mark.parametrize("mode", ["PodGroup", "Pod"])
@pytest.mark.parametrize(
    ("of_pod", "of_group", "victims"), [(HIGH + 1, LOW - 1, ("member",)), (LOW - 1, HIGH, ())]
)
def test_the_priority_of_a_group_counts_instead_of_its_pods(
    mode: str, of_pod: int, of_group: int, victims: tuple[str, ...]
) -> None:
    """Whatever its disruption mode (kube-scheduler 1.37, GetPodPriority)."""
    bench = Bench(gates=WORKLOADS, listers={kinds.POD_GROUP: group_of(mode, priority=of_group)})
    bench.put(node("node1", "300m"), pod("member", "200m", priority=of_pod, **MEMBER), growing())
    assert bench.attempt().victims == victims


def test_a_pod_of_a_group_is_more_important_than_one_without() -> None:
    bench = Bench(gates=WORKLOADS, listers={kinds.POD_GROUP: group_of("Pod")})
    bench.put(node("node1", "300m"), pod("single", "100m"), pod("member", "100m", **MEMBER))
    bench.put(growing("200m"))
    assert bench.attempt().victims == ("single",)


def test_a_resize_does_not_evict_its_own_group() -> None:
    """Its group may have a lower priority than the pod itself."""
    bench = Bench(gates=WORKLOADS, listers={kinds.POD_GROUP: group_of(priority=LOW - 1)})
    bench.put(node("node1", "300m"), pod("mate", "200m", priority=LOW - 1, **MEMBER), growing(**MEMBER))
    assert bench.attempt().victims == ()


@pytest.mark.parametrize("mode", ["PodGroup", "Pod"])
def test_a_budget_of_a_group_member_on_another_node_counts(mode: str) -> None:
    """The group is one victim: evicting it would violate the budget of its member on node2."""
    pdb = budget_of({"a": "b"})
    bench = Bench(
        gates=WORKLOADS, listers={kinds.POD_GROUP: group_of(mode), kinds.POD_DISRUPTION_BUDGET: pdb}
    )
    bench.put(node("node1", "300m"), node("node2", "1"), pod("member", "100m", priority=1, **MEMBER))
    bench.put(pod("far", "100m", on="node2", labels={"a": "b"}, **MEMBER))
    bench.put(pod("single", "100m", priority=LOW + 1), growing("200m"))
    assert bench.attempt().victims == (("single",) if mode == "PodGroup" else ("member",))


def test_a_group_is_evicted_or_left_as_a_whole() -> None:
    """Its pods are not spared one by one: both go, so that the other pod may stay."""
    bench = Bench(gates=WORKLOADS, listers={kinds.POD_GROUP: group_of()})
    bench.put(node("node1", "400m"), pod("one", "100m", priority=1, **MEMBER))
    bench.put(pod("two", "100m", priority=60, **MEMBER), pod("single", "100m", priority=50))
    bench.put(growing())
    assert bench.attempt().victims == ("one", "two")


def test_a_resize_is_woken_when_its_victims_end_at_once() -> None:
    """The deletion of a victim on another node wakes no resize, so one of the own node is evicted last."""
    bench = Bench(gates=WORKLOADS, listers={kinds.POD_GROUP: group_of()})
    bench.put(node("node1", "300m"), node("node2", "1"), pod("victim", "200m", **MEMBER))
    bench.put(pod("far", "100m", on="node2", priority=LOW - 1, **MEMBER), growing())
    assert bench.attempt(evicts=True).victims == ("far", "victim")
    assert bench.wakes("growing")
    assert FITS in bench.attempt().message


# ---- "Tracking Preemption Nominations to Avoid Double Preemption" ----


def test_without_tracking_other_victims_may_be_chosen() -> None:
    """Option 1: while v1 terminates, v2 has become the cheaper victim."""
    assert double_preemption(ResizePreemption()) == ("v1", "v2")


@pytest.mark.parametrize("tracking", [Tracking.MEMORY, Tracking.SPEC_NODE_NAME, Tracking.NOMINATED_NODE_NAME])
def test_tracking_waits_for_the_victims(tracking: Tracking) -> None:
    """Options 2, 3 and 4."""
    assert double_preemption(ResizePreemption(tracking=tracking)) == ("v1",)


@pytest.mark.parametrize(
    ("tracking", "evicted"),
    [
        (Tracking.NONE, ("v1", "v2")),
        (Tracking.MEMORY, ("v1", "v2")),
        (Tracking.NOMINATED_NODE_NAME, ("v1",)),
        (Tracking.SPEC_NODE_NAME, ("v1",)),
    ],
)
def test_what_survives_a_restart(tracking: Tracking, evicted: tuple[str, ...]) -> None:
    """Options 1 to 4, "Scheduler Restart"."""
    assert double_preemption(ResizePreemption(tracking=tracking), restart=True) == evicted


def double_preemption(options: ResizePreemption, *, restart: bool = False) -> tuple[str, ...]:
    """Return the pods that are evicted for one resize: v1 is terminating when a cheaper v2 comes."""
    bench = Bench(options)
    bench.put(node("node1", "300m"), pod("v1", "100m"), pod("v2", "100m", priority=LOW + 1))
    bench.put(growing("200m"))
    first = bench.attempt()
    assert first.victims == ("v1",)
    nominates = options.tracking is Tracking.NOMINATED_NODE_NAME
    assert first.node == ("node1" if nominates else "")
    waiting = growing("200m")
    waiting.status.nominatedNodeName = first.node
    changed = [pod("v1", "100m", terminating=True, priority=LOW), pod("v2", "100m", priority=1), waiting]
    if restart:
        bench = Bench(options)
        bench.put(node("node1", "300m"), *changed)
    else:
        bench.put(*changed, node("node1", "301m"))
        assert bench.wakes("growing")
    second = bench.attempt()
    for name in ("v1", *second.victims):
        bench.remove(name)
        if name == "v1" and not second.victims:
            assert "not eligible due to a terminating pod on the nominated node" in second.message
    if not second.victims:
        assert bench.wakes("growing")
        assert FITS in bench.attempt().message
    resolved = settled("200m")
    resolved.status.nominatedNodeName = first.node
    bench.put(resolved)
    assert bench.cleared == (["growing"] if nominates else [])
    return tuple(sorted({*first.victims, *second.victims}))


def test_a_nomination_by_another_scheduler_is_kept() -> None:
    """Option 3: only the nominations of this scheduler's own pods are cleared."""
    bench = Bench(ResizePreemption(tracking=Tracking.NOMINATED_NODE_NAME))
    other = pod("other", "100m", schedulerName="another")
    other.status.nominatedNodeName = "node1"
    bench.put(node("node1", "300m"), other)
    assert bench.cleared == []
