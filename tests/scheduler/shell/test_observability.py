"""What one can see of a running scheduler: metrics under upstream's names, and its queues."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry, generate_latest
from starlette.requests import Request
from starlette.responses import Response
from structlog.testing import capture_logs

from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.process.serving_port.serving import Handler, Serving
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.clock import FakeClock, rfc3339_micro
from nominee.scheduler.framework.api.events import ActionType, ClusterEvent, EventResource, QueueingHint
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Code, FilterPlugin, PreEnqueuePlugin, ScorePlugin, Status
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.queue.hints import Registration
from nominee.scheduler.shell.metrics.measured_events import timed_ask
from nominee.scheduler.shell.metrics.tables import Metrics
from nominee.scheduler.shell.process import debug
from nominee.scheduler.shell.process.wiring import Parts
from tests.nominee.explain.test_schema import VALIDATOR
from tests.scheduler.builders import Scripted, node, pod
from tests.scheduler.shell.conftest import running
from tests.support.fake_api import FakeApi


def samples(metrics: Metrics) -> dict[str, float]:
    """`name{labels}` -> value."""
    found: dict[str, float] = {}
    for line in generate_latest(metrics.registry).decode().splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found[name] = float(value)
    return found


async def all_seen_bound(api: FakeApi, parts: Parts, count: int) -> None:
    """Pods p0, p1 and so on are bound, their bindings are over, and the scheduler has heard of it."""

    def is_seen(name: str) -> bool:
        found = parts.informers.pods.get(name, "default")
        return found is not None and bool(found.spec.nodeName)

    await api.until(lambda: all(is_seen(f"p{number}") for number in range(count)))
    await api.until(lambda: not parts.scheduler.bindings.binding)


async def test_metrics_of_scheduled_and_unschedulable_pods() -> None:
    api = FakeApi()
    api.put(node("n1", cpu="10"))
    async with running(api) as parts:
        for number in range(10):
            api.put(pod(f"p{number}").pod)
        api.put(pod("big", cpu="11").pod)
        await api.until(lambda: parts.queue.counts()["unschedulable"] == 1)
        await all_seen_bound(api, parts, 10)
        found = samples(parts.metrics)
    profile = 'profile="default-scheduler"'
    attempts = "scheduler_schedule_attempts_total"
    assert found[f'{attempts}{{{profile},result="scheduled"}}'] == 10
    assert found[f'{attempts}{{{profile},result="unschedulable"}}'] == 1
    assert found['scheduler_pending_pods{queue="unschedulable"}'] == 1
    assert found['scheduler_pending_pods{queue="active"}'] == 0
    came = "scheduler_queue_incoming_pods_total"
    assert found[f'{came}{{event="UnschedulablePodAdd",queue="active"}}'] == 11
    assert found[f'{came}{{event="ScheduleAttemptFailure",queue="unschedulable"}}'] == 1
    assert found['scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"}'] == 10
    assert found["scheduler_scheduling_algorithm_duration_seconds_count"] == 11
    assert found["scheduler_preemption_attempts_total"] == 1
    timed = f'extension_point="Filter",{profile},status="Success"'
    points = "scheduler_framework_extension_point_duration_seconds_count"
    assert found[f"{points}{{{timed}}}"] == 11
    for point, status, count in (
        ("PreFilter", "Success", 11),
        ("PostFilter", "Unschedulable", 1),
        ("Reserve", "Success", 10),
        ("Permit", "Success", 10),
        ("PreBindPreFlight", "Skip", 10),
        ("PreBind", "Success", 10),
        ("Bind", "Success", 10),
        ("PostBind", "Success", 10),
    ):
        labels = f'extension_point="{point}",{profile},status="{status}"'
        assert found[f"{points}{{{labels}}}"] == count, point
    assert found['scheduler_cache_size{type="nodes"}'] == 1
    handled = "scheduler_event_handling_duration_seconds_count"
    assert found[f'{handled}{{event="NodeAdd"}}'] == 1
    assert found[f'{handled}{{event="UnschedulablePodAdd"}}'] == 11
    assert found[f'{handled}{{event="AssignedPodAdd"}}'] == 10
    assert found['scheduler_inflight_events{event="PodPopped"}'] == 0


async def test_plugins_are_timed_in_every_tenth_attempt() -> None:
    api = FakeApi()
    for name in ("n1", "n2"):
        api.put(node(name, cpu="10"))
    api.put(node("small", cpu="1"))
    async with running(api) as parts:
        for number in range(20):
            api.put(pod(f"p{number}", cpu="500m").pod)
        await all_seen_bound(api, parts, 20)
        found = samples(parts.metrics)
    timed = "scheduler_plugin_execution_duration_seconds_count"

    def count(plugin: str, point: str, status: str) -> float:
        return found.get(f'{timed}{{extension_point="{point}",plugin="{plugin}",status="{status}"}}', 0)

    assert count("NodeResourcesFit", "PreFilter", "Success") == 2
    assert count("NodePorts", "PreFilter", "Skip") == 2
    assert count("NodePorts", "Filter", "Success") == 0
    # An observation for each node.
    passed = count("NodeResourcesFit", "Filter", "Success")
    assert passed + count("NodeResourcesFit", "Filter", "Unschedulable") == 6
    assert count("NodeResourcesFit", "Score", "Success") == passed
    assert count("DefaultBinder", "Bind", "Success") == 2
    assert count("VolumeBinding", "PreBindPreFlight", "Skip") == 2


async def test_hints_are_timed_by_plugin_event_and_answer() -> None:
    api = FakeApi()
    api.put(node("n1", cpu="2"))
    async with running(api) as parts:
        api.put(pod("big", cpu="3").pod)
        await api.until(lambda: parts.queue.counts()["unschedulable"] == 1)
        for name, cpu in (("n2", "1"), ("n3", "4")):
            api.put(node(name, cpu=cpu))
        await api.until(lambda: api.pod("big").spec.nodeName == "n3")
        found = samples(parts.metrics)
    asked = "scheduler_queueing_hint_execution_duration_seconds_count"
    said = {
        hint: found[f'{asked}{{event="NodeAdd",hint="{hint}",plugin="NodeResourcesFit"}}']
        for hint in ("Queue", "QueueSkip")
    }
    assert said == {"Queue": 1, "QueueSkip": 1}


async def test_an_attempt_without_post_filter_is_no_preemption_attempt() -> None:
    """DynamicResources' PostFilter comes first, and ends in an error when PreFilter never got to it."""
    api = FakeApi()
    api.put(node("n1", cpu="2"))
    async with running(api) as parts:
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]
        api.put(pod("big", volumes=volumes).pod)
        await api.until(lambda: parts.queue.counts()["unschedulable"] == 1)
        found = samples(parts.metrics)
    assert found["scheduler_preemption_attempts_total"] == 0


async def test_queues_as_json() -> None:
    waits = Scripted(
        permit_status=(Status(Code.Wait), 60.0),
        pre_flight=(Status(Code.Skip), False),
        bind_status=Status(Code.Skip),
    )
    api = FakeApi()
    api.put(node("n1"))
    api.put(pod("waiting").pod)
    api.put(pod("gated", schedulingGates=[{"name": "x"}], priority=9).pod)
    api.put(pod("big", cpu="11", nominated="later", priority=-1).pod)
    async with running(api, waits, gates={"NominatedNodeNameForExpectation": False}) as parts:
        await api.until(lambda: parts.queue.counts()["unschedulable"] == 1 and len(parts.waiting) == 1)
        found = debug.queues(parts.scheduler)
    assert found["waiting_on_permit"] == [{"pod": "default/waiting", "node": "n1"}]
    assert found["binding"] == []
    assert found["active"] == found["backoff"] == []
    [gated] = found["gated"]
    assert (gated["pod"], gated["attempts"], gated["plugins"]) == ("default/gated", 0, ["SchedulingGates"])
    assert gated["lastAttemptStartTime"] == ""
    [big] = found["unschedulable"]
    assert big["attempts"] == 1
    assert "NodeResourcesFit" in big["plugins"]
    assert big["since"].endswith("Z")


async def test_an_attempt_begins_when_the_pod_is_popped() -> None:
    """Not when the pod is queued again: what comes between the two is an event in flight."""
    api = FakeApi()
    api.put(node("n1", cpu="2"))
    api.put(pod("big", cpu="9").pod)
    failpoints.arm("scheduler.cycle.after", "1*pause")
    async with running(api) as parts:
        await api.until(lambda: bool(failpoints.REGISTRY.point("scheduler.cycle.after").state().waiting))
        between = rfc3339_micro(parts.now())
        failpoints.arm("scheduler.cycle.after", "off")
        await api.until(lambda: parts.queue.counts()["unschedulable"] == 1)
        [entry] = debug.queues(parts.scheduler)["unschedulable"]
        big = parts.informers.pods.get("big", "default")
        assert big is not None
        found = debug.explain(parts.scheduler, ObjectKey("default", "big"), PodInfo(big), nodes_max=2)
    assert entry["lastAttemptStartTime"] <= between <= entry["since"]
    assert entry["lastAttemptStartTime"] < entry["since"]
    assert found["lastAttemptStartTime"] == entry["lastAttemptStartTime"]


def test_two_registries_do_not_mix() -> None:
    one, other = Metrics(CollectorRegistry()), Metrics(CollectorRegistry())
    one.attempted("scheduled", "p", 0.1)
    assert samples(other).get('scheduler_schedule_attempts_total{profile="p",result="scheduled"}') is None


async def test_why_a_pod_waits() -> None:
    api = FakeApi()
    api.put(node("n1", cpu="2"))
    api.put(node("n2", cpu="1"))
    async with running(api) as parts:
        api.put(pod("small", cpu="2", on="n1").pod)
        api.put(pod("big", cpu="2", priority=5).pod)
        await api.until(lambda: bool(parts.deps.attempts.of(ObjectKey("default", "big"))))
        big = parts.informers.pods.get("big", "default")
        assert big is not None
        found = debug.explain(parts.scheduler, ObjectKey("default", "big"), PodInfo(big), nodes_max=10)
    (attempt, *_) = found["attempts"]
    assert attempt["result"] == "Unschedulable"
    assert (attempt["node"], attempt["victims"]) == ("n1", ["default/small"])
    by_node = {node: r["reasons"] for r in attempt["rejections"] for node in r["nodes"]}
    assert by_node == {"n1": ["Insufficient cpu"], "n2": ["Insufficient cpu"]}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"cpu": "9"}, "Insufficient cpu. no new claims to deallocate, preemption: 0/1"),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]},
            # As kube-scheduler 1.36.2: DynamicResources' PostFilter has no state of its PreFilter.
            'persistentvolumeclaim "none" not found. not found',
        ),
    ],
)
async def test_explain_has_the_message_of_the_event(spec: dict[str, Any], said: str) -> None:
    api = FakeApi()
    api.put(node("n1", cpu="2"))
    async with running(api) as parts:
        api.put(pod("big", **spec).pod)
        key = ObjectKey("default", "big")
        await api.until(lambda: bool(parts.deps.attempts.of(key)))
        big = parts.informers.pods.get("big", "default")
        assert big is not None
        found = debug.explain(parts.scheduler, key, PodInfo(big), nodes_max=2)
    now = found["explanation"]
    assert now is not None
    assert now["preemption"] is not None
    assert f"{now['message']} {now['preemption']['message']}" == found["attempts"][0]["message"]
    assert said in found["attempts"][0]["message"]


class Failing(PreEnqueuePlugin, FilterPlugin, ScorePlugin):
    """A plugin from outside that raises at one step."""

    name = "Failing"

    def __init__(self, step: str, text: str = "boom") -> None:
        self.step, self.text = step, text

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        self._fail_at("PreEnqueue")
        return None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        self._fail_at("Filter")
        return None

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        self._fail_at("Score")
        return 101 if self.step == "out of range" else 0

    def normalize(self, state: CycleState, pod: PodInfo, scores: NDArray[np.int64]) -> NDArray[np.int64]:
        self._fail_at("Normalize")
        return scores

    def _fail_at(self, step: str) -> None:
        if self.step == step:
            raise ValueError(self.text)


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("PreEnqueue", 'running PreEnqueue plugin "Failing": boom'),
        ("Filter", 'running "Failing" filter plugin: boom'),
        ("Score", 'running Score plugins: plugin "Failing" failed with: boom'),
        ("Normalize", 'running Normalize on Score plugins: plugin "Failing" failed with: boom'),
        (
            "out of range",
            'applying score defaultWeights on Score plugins: plugin "Failing" returns an invalid score 101, '
            "it should in the range of [0, 100] after normalizing",
        ),
    ],
)
async def test_a_plugin_that_fails_is_an_error_of_the_explanation(step: str, error: str) -> None:
    api = FakeApi()
    for name in ("n1", "n2"):
        api.put(node(name, cpu="2"))
    plugin = Failing("")
    async with running(api, plugin) as parts:
        await api.until(lambda: len(parts.informers.nodes) == 2)
        plugin.step = step
        found = debug.explain(parts.scheduler, ObjectKey("default", "p"), pod("p"), nodes_max=2)
    assert (found["error"], found["explanation"]) == (error, None)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("pod=default/p&nodes=3", 200),
        ("pod=default/p&nodes=123456789", 200),
        ("pod=default/p&nodes=" + "9" * 5000, 400),  # more digits than int() reads
        ("pod=default/p&nodes=-1", 400),
        ("pod=p", 400),
        ("", 400),
    ],
)
async def test_what_explain_is_asked_for(query: str, code: int) -> None:
    async with running(FakeApi()) as parts:
        assert (await asked(parts, query)).status_code == code


@pytest.mark.parametrize(("text", "shown"), [("boom", "boom"), ("bo\udcffm", "bo\\udcffm")])
async def test_explain_answers_where_a_plugin_raises_in_score(text: str, shown: str) -> None:
    """The text of an exception may have what UTF-8 does not: surrogates, for bytes that are no text."""
    api = FakeApi()
    for name in ("n1", "n2"):
        api.put(node(name, cpu="2"))
    async with running(api, Failing("Score", text)) as parts:
        await api.until(lambda: len(parts.informers.nodes) == 2)
        api.put(pod("p").pod)
        await api.until(lambda: bool(parts.scheduler.deps.attempts.of(ObjectKey("default", "p"))))
        answer = await asked(parts, "pod=default/p")
    document = json.loads(bytes(answer.body))
    assert answer.status_code == 200
    assert document["error"] == f'running Score plugins: plugin "Failing" failed with: {shown}'
    assert document["attempts"][-1]["result"] == "SchedulerError"


async def asked(parts: Parts, query: str) -> Response:
    """Return the answer of `/debug/explain`."""
    handlers: dict[str, Handler] = {}

    class Routes(Serving):
        def add_route(self, path: str, handler: Handler, methods: Sequence[str] = ("GET",)) -> None:
            handlers[path] = handler

    debug.serve(Routes(), parts)
    request = Request({"type": "http", "query_string": query.encode(), "headers": []})
    answer: Response = await handlers["/debug/explain"](request)
    return answer


def test_a_hint_that_raises_is_logged() -> None:
    def fails(pod: PodInfo, old: object, new: object) -> QueueingHint:
        raise ValueError("boom")

    event = ClusterEvent(EventResource.Node, ActionType.Add)
    asks = timed_ask(Metrics(CollectorRegistry()).hint_seconds, FakeClock())
    with capture_logs() as logged, pytest.raises(ValueError, match="boom"):
        asks(Registration("Failing", event, fails), event, pod("p"), None, None)
    (line,) = logged
    assert line["event"] == "A queueing hint failed"
    assert line["plugin"] == "Failing"
    assert "NodeAdd" in str(line)


async def test_a_pre_enqueue_plugin_that_raises_gates_the_pod() -> None:
    api = FakeApi()
    api.put(node("n1", cpu="2"))
    async with running(api, Failing("PreEnqueue")) as parts:
        api.put(pod("p").pod)
        await api.until(lambda: parts.queue.counts()["gated"] == 1)
        assert debug.queues(parts.scheduler)["gated"][0]["plugins"] == ["Failing"]


async def test_what_would_happen_now_changes_nothing() -> None:
    api = FakeApi()
    api.put(node("n1", cpu="2"))
    for number in range(3):
        api.put(node(f"m{number}", cpu="1"))
    api.put(pod("small", cpu="2", on="n1", priority=3).pod)
    async with running(api) as parts:
        api.put(pod("big", cpu="2", preemptionPolicy="Never").pod)
        await api.until(lambda: parts.queue.counts()["unschedulable"] == 1)
        big = parts.informers.pods.get("big", "default")
        assert big is not None
        before = debug.queues(parts.scheduler)
        key = ObjectKey("default", "big")
        found = debug.explain(parts.scheduler, key, PodInfo(big), nodes_max=2)
        assert debug.explain(parts.scheduler, key, PodInfo(big), nodes_max=2) == found
        assert debug.queues(parts.scheduler) == before
        nothing = debug.explain(parts.scheduler, ObjectKey("default", "who"), None, nodes_max=2)
        small = parts.informers.pods.get("small", "default")
        assert small is not None
        bound = debug.explain(parts.scheduler, ObjectKey("default", "small"), PodInfo(small), nodes_max=2)
    assert (nothing["state"], nothing["attempts"], nothing["explanation"]) == ("Unknown", [], None)
    assert (bound["state"], bound["node"], bound["explanation"]) == ("Bound", "n1", None)
    assert (found["state"], found["rejectedBy"]) == ("Unschedulable", ["NodeResourcesFit"])
    now = found["explanation"]
    assert now is not None
    assert now["omittedNodes"] == 2
    assert {each["node"] for each in now["rejectedNodes"]} == {"m0", "m1"}
    said = "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    assert now["preemption"] is not None
    assert now["preemption"]["message"] == said
    assert "Pod/Delete|UpdatePodScaleDown" in now["requeueEvents"]
    for document in (nothing, bound, found):
        VALIDATOR.validate(document)
