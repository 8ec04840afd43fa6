"""What a restart of all processes may not change: on states as data, and in a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from nominee.controllers.jobs.shell.expiry import FinishedJobs
from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.observations import Undisturbed
from nominee.lab.chaos.messages import CaseAnswer
from nominee.lab.chaos.rest.losses import has_unwritten_attempts, losses_of
from nominee.lab.chaos.rest.nodes import AUTOSCALER, LOOP, has_drains, recheck_seconds
from nominee.lab.chaos.rest.restart import Facts, changes, facts
from nominee.lab.chaos.rest.scheduling import QUEUE, SCHEDULER
from nominee.lab.chaos.worker import simulated
from nominee.lab.scenario.format.reading import read_text
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.runtime.clock import rfc3339
from nominee.machinery.wire.values.scalars import Json
from nominee.simulation.simulation import Simulation
from tests.lab.chaos.rest.clusters import NOW, Change, Manifests, changed, correct, manifest, pod, put, state

SCENARIO = """
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: expiry}
spec:
  cluster: {nodes: 1, without: [autoscaler, cloud]}
  steps:
    - apply:
        apiVersion: batch/v1
        kind: Job
        metadata: {name: short}
        spec:
          ttlSecondsAfterFinished: 3
          template:
            metadata: {annotations: {nominee.dev/run-duration: 1s}}
            spec: {restartPolicy: Never, containers: [{name: c, image: app}]}
    - wait: {object: {kind: Job, name: short, condition: Complete=True}}
"""

ATTEMPT = {"lastAttemptStartTime": "1970-01-01T00:01:00Z", "since": "1970-01-01T00:01:10Z"}
"""An attempt that took ten seconds: what came in that time is an event in flight."""


def run(case: str = "") -> CaseAnswer:
    """Run the scenario with a case."""
    (scenario,) = read_text(SCENARIO, "expiry.yaml")
    parsed = Case.parse(case) if case else Case()
    answer = simulated(scenario, parsed, Undisturbed(), Simulation(1), verbose=False)
    assert not answer.error
    return answer


def left_job(manifests: Manifests) -> None:
    """Leave a pod behind that only a process which has started again removes."""
    manifests["left"] = pod("left", namespace="default", labels={})


def recreated(manifests: Manifests) -> None:
    """Replace the pods by others of the same names."""
    for each in manifests.values():
        if each["kind"] == "Pod":
            each["metadata"]["uid"] += "-new"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            put("node/spec/taints", [{"key": "k", "effect": "NoSchedule"}]),
            "has nothing instead of taint k:NoSchedule",
        ),
        (put("node/metadata/finalizers", ["x/y"]), "has nothing instead of finalizer x/y"),
        (left_job, "is removed"),
    ],
)
def test_a_change_by_a_restart_is_found(change: Change, sentence: str) -> None:
    before, after = facts(state(changed(change))), facts(state(correct()))
    (found,) = map(str, changes(before, after))
    assert found.endswith(f"{sentence} after all processes were restarted")


@pytest.mark.parametrize(
    ("statuses", "count"),
    [
        pytest.param(["Unknown"], 1, id="the only one that is not ready has it again at once"),
        pytest.param(["Unknown", "Unknown"], 0, id="several get them one after the other, or not at all"),
        pytest.param(["True", "Unknown", "Unknown"], 1, id="a ready one has none"),
    ],
)
def test_taints_of_nodes_that_are_not_ready_come_back_in_their_time(
    statuses: Sequence[str], count: int
) -> None:
    def silent(first: Sequence[Json]) -> Facts:
        manifests = correct()
        for number, status in enumerate(statuses):
            made = manifest("Node", f"silent-{number}", namespace="")
            made["spec"] = {"taints": [] if number else first}
            made["status"] = {"conditions": [{"type": "Ready", "status": status}]}
            manifests[f"silent-{number}"] = made
        return facts(state(manifests))

    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    assert len(list(changes(silent([taint]), silent([])))) == count


@pytest.mark.parametrize(("seconds", "count"), [(300, 0), (None, 1)], ids=["for a while", "without an end"])
def test_a_pod_that_tolerates_a_taint_for_a_while_goes_with_it(seconds: int | None, count: int) -> None:
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}

    def silent(taints: Sequence[Json], pods: Sequence[str]) -> Facts:
        manifests = correct()
        for number in range(2):
            made = manifest("Node", f"silent-{number}", namespace="")
            made["spec"] = {"taints": taints}
            made["status"] = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
            manifests[f"silent-{number}"] = made
        for name in pods:
            made = manifest("Pod", name)
            made["spec"] = {"nodeName": "silent-0", "tolerations": [{"tolerationSeconds": seconds}]}
            manifests[name] = made
        return facts(state(manifests))

    assert len(list(changes(silent([taint], ["p"]), silent([], [])))) == count
    assert not list(changes(silent([taint], ["p"]), silent([], ["p"])))


def test_other_pods_of_the_same_names_are_found() -> None:
    before, after = facts(state(correct())), facts(state(changed(recreated)))
    found = list(map(str, changes(before, after)))
    assert {each.split(" is ")[1].split()[0] for each in found} == {"created", "removed"}


@pytest.mark.parametrize(("seconds", "count"), [(20.0, 0), (-20.0, 1)])
def test_a_pod_that_terminates_goes_in_its_time(seconds: float, count: int) -> None:
    def ends(manifests: Manifests) -> None:
        deletion = rfc3339(NOW + seconds)
        manifests["ending"] = pod("ending", namespace="default", labels={}, deletionTimestamp=deletion)

    assert len(list(changes(facts(state(changed(ends))), facts(state(correct()))))) == count


@pytest.mark.parametrize(
    ("kind", "phase", "count"),
    [("DaemonSet", "Failed", 0), ("DaemonSet", "Pending", 1), ("Job", "Failed", 1)],
)
def test_a_failed_pod_of_a_daemon_set_is_deleted_after_its_back_off(
    kind: str, phase: str, count: int
) -> None:
    manifests = correct()
    owner = {"apiVersion": "v1", "kind": kind, "name": "x", "uid": "x", "controller": True}
    manifests["left"] = pod("left", namespace="default", labels={}, ownerReferences=[owner])
    manifests["left"]["status"]["phase"] = phase
    assert len(list(changes(facts(state(manifests)), facts(state(correct()))))) == count


def marked(status: str) -> Facts:
    """Return the facts of a cluster with a pod that was marked as a victim."""

    def change(manifests: Manifests) -> None:
        manifests["victim"] = pod("victim", namespace="default", labels={})
        manifests["victim"]["status"]["conditions"].append({"type": "DisruptionTarget", "status": status})

    return facts(state(changed(change)))


def test_a_victim_that_was_not_deleted_is_marked_for_two_minutes_only() -> None:
    assert list(changes(marked("True"), marked("False"))) == []


@pytest.mark.parametrize(
    ("spec", "changed_at", "count"),
    [
        ({"schedulingGroup": {"podGroupName": "gang"}}, 59.0, 0),
        ({"schedulingGroup": {"podGroupName": "gang"}}, 60.0, 1),  # an event may have been lost
        ({"schedulingGroup": {"podGroupName": "gang"}}, 65.0, 1),
        ({}, 59.0, 1),
    ],
    ids=["tried", "room came later", "room came while it was tried", "no group"],
)
def test_another_attempt_at_a_group_may_take_other_nodes(spec: Json, changed_at: float, count: int) -> None:
    def waiting(at: str) -> Change:
        found = pod("p", node=at, namespace="default", labels={})
        found["spec"].update(spec)
        return lambda manifests: manifests.update(p=found)

    entry = {"pod": "default/p", **ATTEMPT, "plugins": []}
    document = {"gated": [], "nominated": {}, "unschedulable": [entry]}
    before = state(changed(waiting("")), debug={(SCHEDULER, QUEUE): document})
    before = replace(before, room_changed={None: changed_at})
    after = facts(state(changed(waiting("n1"))))
    assert len(list(changes(facts(before), after, losses_of(before)))) == count


@pytest.mark.parametrize(("victim_node", "count"), [("n1", 0), ("n2", 2)])
def test_another_attempt_at_a_group_may_preempt_pods(victim_node: str, count: int) -> None:
    """The victim is created again without a node; a claim follows the pod that got one."""

    def cluster(at: str, other: str, other_node: str, finalizers: list[str]) -> Change:
        found = pod("p", node=at, namespace="default", labels={})
        found["spec"].update({"schedulingGroup": {"podGroupName": "gang"}})
        victim = pod(other, node=other_node, namespace="default", labels={})
        metadata = {"name": "data", "namespace": "default", "uid": "data", "finalizers": finalizers}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
        return lambda manifests: manifests.update(p=found, victim=victim, claim=claim)

    entry = {"pod": "default/p", **ATTEMPT, "plugins": []}
    document = {"gated": [], "nominated": {}, "unschedulable": [entry]}
    former = changed(cluster("", "victim", victim_node, []))
    before = replace(state(former, debug={(SCHEDULER, QUEUE): document}), room_changed={None: 59.0})
    after = facts(state(changed(cluster("n1", "created-again", "", ["x/y"]))))
    assert len(list(changes(facts(before), after, losses_of(before)))) == count


def test_what_follows_a_pod_is_found_without_it() -> None:
    """A claim that changes alone was not at rest, whatever the scheduler forgets."""
    entry = {"pod": "default/p", **ATTEMPT, "plugins": []}
    document = {"gated": [], "nominated": {}, "unschedulable": [entry]}

    def cluster(finalizers: list[str]) -> Change:
        found = pod("p", namespace="default", labels={})
        found["spec"].update({"schedulingGroup": {"podGroupName": "gang"}})
        metadata = {"name": "data", "namespace": "default", "uid": "data", "finalizers": finalizers}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
        return lambda manifests: manifests.update(p=found, claim=claim)

    before = state(changed(cluster([])), debug={(SCHEDULER, QUEUE): document})
    before = replace(before, room_changed={None: 59.0})
    (found,) = changes(facts(before), facts(state(changed(cluster(["x/y"])))), losses_of(before))
    assert found.object == "persistentvolumeclaim default/data"


@pytest.mark.parametrize(
    ("plugin", "node", "count", "text"),
    [
        ("DefaultPreemption", "n1", 1, "pod default/p waits in the state Gated, and fits on n1"),
        ("DefaultPreemption", "", 0, ""),
        ("GangScheduling", "n1", 2, "pod default/p has "),
    ],
)
def test_a_pod_of_a_group_waits_for_evictions_that_are_over(
    plugin: str, node: str, count: int, text: str
) -> None:
    """As the rule for single pods says it, which the scheduler explains; the others of the group follow."""

    def waiting(at: str) -> Change:
        found = {name: pod(name, node=at, namespace="default", labels={}) for name in ("p", "q")}
        for each in found.values():
            each["spec"].update({"schedulingGroup": {"podGroupName": "gang"}})
        return lambda manifests: manifests.update(found)

    entry = {"pod": "default/p", **ATTEMPT, "plugins": [plugin, "NodeResourcesFit"]}
    document = {"gated": [entry], "nominated": {}, "unschedulable": []}
    before = state(changed(waiting("")), debug={(SCHEDULER, QUEUE): document})
    found = list(map(str, changes(facts(before), facts(state(changed(waiting(node)))), losses_of(before))))
    assert len(found) == count
    assert "".join(found).startswith(text)


@pytest.mark.parametrize(
    ("asked", "phase", "failed", "count"),
    [
        ("fast", "Failed", [], 0),
        ("fast", "Running", [], 1),
        ("slow", "Failed", [], 2),
        ("fast", "", ["Pod-p"], 0),
        ("fast", "", ["Pod-other"], 2),
        ("slow", "", ["Pod-p"], 2),
    ],
    ids=[
        *("refused", "not refused", "its node suits it", "refused and deleted"),
        *("deleted", "its node suits it, and it is deleted"),
    ],
)
def test_a_kubelet_that_starts_refuses_a_pod_whose_node_has_lost_a_label(
    asked: str, phase: str, failed: Sequence[str], count: int
) -> None:
    """Its owner creates another one, and may delete it."""

    def cluster(phase: str, *others: str) -> Change:
        found = {name: pod(name, node="", namespace="default", labels={}) for name in others}
        if phase:
            found["p"] = pod("p", node="n1", namespace="default", labels={})
            found["p"]["spec"]["nodeSelector"] = {"disk": asked}
            found["p"]["status"]["phase"] = phase

        def change(manifests: Manifests) -> None:
            manifests.update(found)
            manifests["node"]["metadata"]["labels"] = {"disk": "slow"}

        return change

    before = state(changed(cluster("Running")))
    after = facts(state(changed(cluster(phase, "created"))))
    assert len(list(changes(facts(before), after, losses_of(before), failed))) == count


@pytest.mark.parametrize(
    ("able", "active", "rivals", "targets", "count"),
    [
        ("FailedGetScale", "AmbiguousSelector", "default/one default/two", "two", 0),
        ("SucceededGetScale", "AmbiguousSelector", "default/one default/two", "two", 2),
        ("FailedGetScale", "FailedGetResourceMetric", "default/one default/two", "two", 2),
        ("FailedGetScale", "AmbiguousSelector", "default/one default/two", "one two", 2),
        ("FailedGetScale", "AmbiguousSelector", "default/one default/other default/two", "other two", 2),
        ("FailedGetScale", "AmbiguousSelector", "default/other default/two", "other two", 2),
    ],
    ids=[
        *("its rival has no target", "its rival has a target", "no rival", "a scale that cannot be read"),
        *("another rival has a target", "an autoscaler of other pods has no target"),
    ],
)
def test_an_autoscaler_of_pods_forgets_the_selector_of_a_target_that_is_gone(
    able: str, active: str, rivals: str, targets: str, count: int
) -> None:
    """The autoscaler of the same pods scales its target then."""

    def cluster(rival: Json, names: Sequence[str]) -> Change:
        lost = {"type": "AbleToScale", "status": "False", "reason": able, "message": "not found"}
        found = {}
        for name, conditions in {"one": [lost], "two": [rival], "other": []}.items():
            spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name}}
            status = {"conditions": conditions}
            found[name] = manifest(
                "HorizontalPodAutoscaler", name, api="autoscaling/v2", spec=spec, status=status
            )
        sets = {f"set-{name}": manifest("StatefulSet", name, api="apps/v1") for name in targets.split()}
        pods = {name: pod(name, namespace="default", labels={}) for name in names}
        return lambda manifests: manifests.update(found | sets | pods)

    text = f"pods by selector app=web are controlled by multiple HPAs: [{rivals}]"
    waiting = {"type": "ScalingActive", "status": "False", "reason": active, "message": text}
    before = state(changed(cluster(waiting, [])))
    after = facts(state(changed(cluster({"type": "ScalingActive", "status": "True"}, ["created"]))))
    assert len(list(changes(facts(before), after, losses_of(before)))) == count


@pytest.mark.parametrize(
    ("loop", "count"),
    [
        ({}, 1),
        ({"backedOffGroups": ["pool"]}, 0),
        ({"inCooldown": True}, 0),
        ({"pendingHints": ["n1"]}, 0),
        ({"heldByHints": ["n1"]}, 0),
        ({"lackingDevices": ["n1"]}, 0),
        ({"heldByHints": ["other"]}, 1),
    ],
)
def test_an_autoscaler_forgets_that_it_waits(loop: Json, count: int) -> None:
    nothing = {"backedOffGroups": [], "inCooldown": False, "pendingHints": []}
    before = state(correct(), debug={(AUTOSCALER, LOOP): nothing | loop})
    after = facts(state(changed(lambda manifests: manifests.pop("node"))))
    assert len(list(changes(facts(before), after, losses_of(before)))) == count


@pytest.mark.parametrize("loop", [{"inCooldown": True}, {"pendingHints": ["n1"]}])
def test_what_an_autoscaler_forgets_places_pods_and_mends_none(loop: Json) -> None:
    """A lost wake-up beside a hint is found, and so is a node that was not ready."""

    def cluster(node: str, ready: str) -> Change:
        waiting = pod("p", node=node, namespace="default", labels={})

        def change(manifests: Manifests) -> None:
            manifests["p"] = waiting
            manifests["node"]["status"]["conditions"] = [{"type": "Ready", "status": ready}]

        return change

    nothing = {"backedOffGroups": [], "inCooldown": False}
    before = state(changed(cluster("", "Unknown")), debug={(AUTOSCALER, LOOP): nothing | loop})
    after = facts(state(changed(cluster("n1", "True"))))
    found = {each.object for each in changes(facts(before), after, losses_of(before))}
    assert found == ({"node n1"} if "inCooldown" in loop else {"node n1", "pod default/p"})


@pytest.mark.parametrize(("deleting", "expected"), [([], False), (["n1"], True)])
def test_a_drain_goes_on(deleting: list[str], expected: bool) -> None:
    loop = {(AUTOSCALER, LOOP): {"deleting": deleting}}
    assert has_drains(state(correct(), debug=loop)) is expected
    assert not has_drains(state(correct()))


@pytest.mark.parametrize(
    ("left", "timeout", "seconds"),
    [
        ({}, 300.0, 0.0),
        ({"n1": 295.0}, 300.0, 0.0),  # of the time since the last change
        ({"n1": 240.0, "n2": 250.0, "n3": 299.0}, 300.0, 250.0),
        ({"n1": 4.0}, 300.0, 4.0),
        ({"n1": 1.0}, 2.0, 0.0),
    ],
)
def test_a_node_that_cannot_be_removed_is_looked_at_again(
    left: dict[str, float], timeout: float, seconds: float
) -> None:
    loop = {(AUTOSCALER, LOOP): {"recheckSeconds": left, "recheckTimeout": timeout}}
    assert recheck_seconds(state(correct(), debug=loop), 12.0) == seconds
    assert recheck_seconds(state(correct()), 12.0) == 0.0


@pytest.mark.parametrize(
    ("conditions", "is_unwritten"),
    [
        ([], True),
        ([{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}], True),
        ([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}], False),
        ([{"type": "PodScheduled", "status": "True"}], False),
    ],
    ids=["none", "of gates that were removed", "of an attempt", "of a pod whose resize waits"],
)
def test_an_attempt_that_could_not_be_written_is_waited_for(conditions: Json, *, is_unwritten: bool) -> None:
    def waiting(found: Json) -> Change:
        def change(manifests: Manifests) -> None:
            manifests["p"] = pod("p", node="", namespace="default", labels={})
            manifests["p"]["status"]["conditions"] = found

        return change

    document = {"gated": [], "nominated": {}, "unschedulable": [{"pod": "default/p"}]}
    before = state(changed(waiting(conditions)), debug={(SCHEDULER, QUEUE): document})
    assert has_unwritten_attempts(before) is is_unwritten
    assert not has_unwritten_attempts(state(changed(waiting(conditions))))
    written = [{"type": "PodScheduled", "status": "False"}, {"type": "other", "status": "True"}]
    after = facts(state(changed(waiting(written))))
    # The next attempt repeats the write: one that only the restart brings was forgotten.
    assert len(list(changes(facts(before), after, losses_of(before)))) == 1


def test_a_cluster_that_stays_as_it_is_has_no_finding() -> None:
    assert list(changes(facts(state(correct())), facts(state(correct())))) == []


@pytest.mark.parametrize("case", ["", "controllers:controllers.job_expiry.delete.before=crash"])
def test_a_correct_cluster_is_not_changed(case: str) -> None:
    assert run(case).unsettled == ""


def test_what_a_controller_has_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    reconcile = FinishedJobs.reconcile

    async def forgets_the_time(self: FinishedJobs, key: ObjectKey) -> None:
        await reconcile(self, key)

    monkeypatch.setattr(FinishedJobs, "reconcile", forgets_the_time)
    unsettled = run().unsettled
    assert "job default/short is removed after all processes were restarted" in unsettled
