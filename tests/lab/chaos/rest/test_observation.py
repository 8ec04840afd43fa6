"""The wait for rest: findings count when they stay, and the scenario may expect some."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest

from nominee.lab.chaos.rest.expectations import expectations_of
from nominee.lab.chaos.rest.observation import ASKED_MAX, outstanding
from nominee.lab.chaos.rest.state import FINDING_SECONDS_MAX, LISTED, Expectations
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.lab.scenario.format.reading import read_file, read_text
from nominee.localcluster.cluster import ClusterError, ProcessState
from nominee.localcluster.supervisor.model.states import ChildState
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, not_found
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import rfc3339
from nominee.machinery.wire.files.manifests import parse_object
from tests.lab.chaos.rest.clusters import NOW, Manifest, Manifests, changed, correct, manifest, put, state

ROOT = Path(__file__).parents[4]
MISSING = put("budget/status/currentHealthy", 1)


class Time:
    """A clock on which a sleep takes no time."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return NOW + self.seconds

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class Cluster:
    """A cluster that has these objects, each state at one observation, the last one from then on."""

    def __init__(self, states: Iterable[Manifests]) -> None:
        self.clock, self.client = Time(), self
        states = list(states)
        objects = {id(each): state(each).objects for each in {id(each): each for each in states}.values()}
        self._states = [objects[id(each)] for each in states]

    async def processes(self) -> Sequence[ProcessState]:
        return [ProcessState(name="controllers", component="controllers", state=ChildState.READY)]

    async def http_json(self, component: str, path: str) -> Any:
        raise ClusterError(f"{component} is another program")

    async def list(self, kind: AnyKind, *_scope: str, **_selectors: str) -> Any:
        if kind is kinds.RESOURCE_CLAIM:
            raise not_found(kind, "")
        items = self._states[0].get(kind, ())
        if kind is LISTED[-1] and len(self._states) > 1:
            del self._states[0]
        return SimpleNamespace(items=items)


class Refusing(Cluster):
    """A cluster that refuses each pod with this code."""

    code = 403
    asked: ClassVar[int] = 0

    async def create(self, obj: core.Pod, *, dry_run: bool = False) -> core.Pod:
        assert dry_run
        Refusing.asked += 1
        raise StatusError(self.code, "Forbidden", "maximum cpu usage per Container is 200m")


class Invalid(Refusing):
    """A cluster whose defaults make each pod invalid."""

    code = 422


class Unavailable(Refusing):
    """A cluster whose API server is about to end."""

    code = 503


class Schedulers(Cluster):
    """A cluster of two schedulers, of which none holds a lease."""

    async def processes(self) -> Sequence[ProcessState]:
        names = ("scheduler-0", "scheduler-1")
        return [ProcessState(name=name, component="scheduler", state=ChildState.READY) for name in names]

    async def get(self, kind: AnyKind, name: str, _namespace: str) -> Any:
        raise not_found(kind, name)


async def observed(*states: Manifests, kind: type[Cluster] = Cluster) -> tuple[str, bool, float]:
    """Return the result of a wait, and the seconds that it took."""
    cluster = kind(states)
    text, waited = await outstanding(cast("ScenarioCluster", cluster), Expectations())
    return text, waited, cluster.clock.seconds


async def test_a_correct_cluster_is_not_waited_for() -> None:
    assert await observed(correct()) == ("", False, 0.0)


async def test_schedulers_without_an_election_are_not_asked() -> None:
    text, _, _ = await observed(correct(), kind=Schedulers)
    assert text.startswith("the cluster cannot be observed: none of scheduler-0, scheduler-1 leads")
    assert await observed(changed(lambda manifests: manifests.pop("lease")), kind=Schedulers) == (
        "",
        False,
        0.0,
    )


async def test_a_finding_that_ends_does_not_count() -> None:
    assert await observed(changed(MISSING), changed(MISSING), correct()) == ("", True, 1.0)


async def test_a_finding_that_stays_is_reported_when_the_time_is_over() -> None:
    text, waited, seconds = await observed(changed(MISSING))
    assert text == "poddisruptionbudget default/web shows 1 currentHealthy, and its pods are 2"
    assert (waited, seconds) == (True, FINDING_SECONDS_MAX)


async def test_a_finding_that_is_due_later_has_its_time_from_then() -> None:
    def change(manifests: Manifests) -> None:
        manifests["replicas"]["spec"]["minReadySeconds"] = 50
        manifests["replicas"]["status"]["availableReplicas"] = 1
        manifests["a"]["status"]["conditions"][1]["lastTransitionTime"] = rfc3339(NOW)

    text, _, seconds = await observed(changed(change))
    assert text == "replicaset default/web-1 shows 1 availableReplicas in its status, and its pods are 2"
    assert seconds == 2 * 50 + FINDING_SECONDS_MAX


def _lacking(*others: Manifest, number: int = 1) -> Manifests:
    """Return the correct cluster with so many DaemonSets that lack a pod, and these objects."""
    template = {"spec": {"containers": [{"name": "c", "image": "app"}]}}
    status = {"observedGeneration": 1, "desiredNumberScheduled": 1, "numberUnavailable": 1}

    def change(manifests: Manifests) -> None:
        for index in range(number):
            fields = {"spec": {"template": template}, "status": status}
            name = f"agent-{index}"
            manifests[name] = manifest("DaemonSet", name, api="apps/v1", namespace="other", **fields)
        for each in (manifest("ServiceAccount", "default", namespace="other"), *others):
            manifests[each["kind"]] = each

    return changed(change)


LIMITS = manifest("LimitRange", "limits", namespace="other", spec={"limits": []})


async def test_an_owner_whose_pods_are_refused_does_not_lack_them() -> None:
    for kind in (Refusing, Invalid):
        assert await observed(_lacking(LIMITS), kind=kind) == ("", False, 0.0)
    text, _, _ = await observed(_lacking(LIMITS), kind=Unavailable)
    assert text == "daemonset other/agent-0 has no live pod on the node n1"


async def test_an_api_server_that_refuses_pods_without_a_reason_is_wrong() -> None:
    for kind in (Refusing, Invalid):
        text, _, _ = await observed(_lacking(), kind=kind)
        assert text == "daemonset other/agent-0 has no live pod on the node n1"


async def test_the_api_server_is_asked_for_some_owners_only() -> None:
    Refusing.asked = 0
    await observed(_lacking(LIMITS, number=ASKED_MAX + 5), kind=Refusing)
    assert Refusing.asked == ASKED_MAX


async def test_findings_that_come_and_go_do_not_count() -> None:
    other = put("node/spec/unschedulable", value=True)
    states = [changed(MISSING), changed(other)] * 100
    assert (await observed(*states))[0] == ""


async def test_an_api_server_that_does_not_answer_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(self: Cluster, kind: AnyKind, *_scope: str, **_selectors: str) -> Any:
        raise StatusError(503, "ServiceUnavailable", "the server is shutting down")

    monkeypatch.setattr(Cluster, "list", refuse)
    assert (await observed(correct()))[0] == "the API server answers: the server is shutting down"


def test_a_scenario_may_wait_for_a_failed_pod() -> None:
    (scenario,) = read_file(ROOT / "scenarios" / "kep-5836-kubelet-preemption.yaml")
    expectations = expectations_of(scenario)
    assert expectations.races == {("*", "OutOf"), ("node-0", "OutOf")}
    assert [name for name in ("low", "other") if expectations.rejects(_pod(name))] == ["low"]


def test_a_scenario_that_says_that_no_pod_fails_expects_none() -> None:
    steps = """
    - expect: {never: {object: {kind: Pod, jsonPath: {.status.phase: Failed}}}, seconds: 1}
    - expect: {now: {object: {kind: Pod, jsonPath: {.status.phase: Failed}, exists: false}}}
    - expect: {now: {object: {kind: Pod, jsonPath: {.status.phase: Running}, exists: false}}}
"""
    assert not _of_steps(steps).rejects(_pod("p"))
    assert not _of_steps(steps).races


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ("{metadata: {labels: {rack: null}}}", ("NodeAffinity",)),
        ("{metadata: {annotations: {rack: a}}}", ()),
        ("{spec: {taints: []}}", ("TaintToleration",)),
        ("{spec: {unschedulable: true}}", ()),
        ("{status: {capacity: {cpu: 1}, allocatable: {cpu: 1}}}, subresource: status", ("OutOf",)),
        ("{metadata: {labels: {a: b}}, spec: {taints: []}}", ("NodeAffinity", "TaintToleration")),
        ("[{op: add, path: /metadata/labels/rack, value: a}], type: json", ("NodeAffinity",)),
        ("[{op: replace, path: /spec/taints, value: []}], type: json", ("TaintToleration",)),
        ("[{op: replace, path: /metadata, value: {labels: {rack: a}}}], type: json", ("NodeAffinity",)),
        (
            "[{op: move, from: /metadata/labels/a, path: /metadata/uid}], type: json",
            ("NodeAffinity",),
        ),
        ("[{op: add}, a], type: json", ()),
        ("{metadata: null}", ()),
    ],
)
def test_a_scenario_that_changes_nodes_may_have_pods_refused(patch: str, expected: tuple[str, ...]) -> None:
    steps = f"""
    - patch: {{kind: Node, name: node-0, patch: {patch}}}
    - patch: {{kind: Pod, name: p, patch: {{metadata: {{labels: {{a: b}}}}}}}}
"""
    assert _of_steps(steps).races == {("node-0", reason) for reason in expected}


def test_a_pod_with_a_node_of_its_own_takes_room_that_the_scheduler_gives_away() -> None:
    steps = """
    - apply:
      - {apiVersion: v1, kind: Pod, metadata: {name: own}, spec: {nodeName: node-0, containers: []}}
      - {apiVersion: v1, kind: Pod, metadata: {name: free}, spec: {containers: []}}
"""
    assert _of_steps(steps).races == {("node-0", "OutOf")}


def test_a_scenario_may_delete_the_instances_of_a_node_group() -> None:
    steps = """
    - nodeGroup: {name: pool, increase: 1}
    - nodeGroup: {name: other, increase: 1}
    - nodeGroup: {name: pool, delete: true}
"""
    groups = "[{name: pool, max: 3, template: {}}, {name: other, max: 3, template: {}}]"
    assert _of_steps(steps, groups).emptied_groups == {"pool"}


def _of_steps(steps: str, groups: str = "[]") -> Expectations:
    """Return the expectations of a scenario with these steps."""
    text = f"""
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {{name: s}}
spec:
  cluster: {{nodes: 1, nodeGroups: {groups}}}
  steps:
{steps.strip(chr(10))}
"""
    (scenario,) = read_text(text, "s.yaml")
    return expectations_of(scenario)


def _pod(name: str) -> Any:
    return parse_object(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}}
    )
