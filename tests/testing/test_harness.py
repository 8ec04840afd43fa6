"""One scheduling cycle in the test's own process, with plugins from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from nominee.scheduler.configuration.config import ConfigError
from nominee.scheduler.configuration.profiles import ProfileError
from nominee.scheduler.explanation.verdict import ExplainError
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    Code,
    EnqueueExtensions,
    EventResource,
    FilterPlugin,
    PermitPlugin,
    PreEnqueuePlugin,
    Status,
)
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugin_loader import PluginLoadError
from nominee.testing import PluginHarness


class OnlyEven(FilterPlugin, EnqueueExtensions):
    """Refuses nodes whose name ends with an odd digit."""

    name = "OnlyEven"

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return [ClusterEventWithHint(ClusterEvent(EventResource.Node, ActionType.Add))]

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return Status(Code.Unschedulable, "odd node") if int(node.name[-1]) % 2 else None


class Slow(PermitPlugin):
    """Lets a pod wait, or rejects one with the label `no`."""

    name = "Slow"

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status | None, float]:
        if "no" in pod.pod.metadata.labels:
            return Status(Code.Unschedulable, "not now"), 0.0
        return Status(Code.Wait), 5.0


class Gate(PreEnqueuePlugin):
    """Keeps every pod out of the queue."""

    name = "Gate"

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        return Status(Code.UnschedulableAndUnresolvable, "closed")


class Broken(FilterPlugin):
    """Raises."""

    name = "Broken"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        raise LookupError("no such thing")


def pod(name: str, cpu: str = "1", **more: object) -> dict[str, object]:
    """Return a pod's manifest with a request; `more` are fields of its spec."""
    containers = [{"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu}}}]
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": containers, **more}}


def test_the_answers_of_all_plugins_and_the_node() -> None:
    harness = PluginHarness(nodes=["n0", "n1", "n2"], pods=["a"], plugins=[OnlyEven])
    result = harness.schedule()
    assert result.pod == "default/a"
    assert result.best == ("n0", "n2")
    assert result.node in result.best
    assert result.rejections["n1"].reasons == ("odd node",)
    assert result.rejections["n1"].plugin == "OnlyEven"
    assert result.answers["n1"]["OnlyEven"] == "odd node"
    assert result.answers["n2"]["OnlyEven"] == result.answers["n1"]["NodeResourcesFit"] == "passed"
    assert result.ran["Filter"][-1] == "OnlyEven"
    assert {"NodeResourcesFit", "TaintToleration"} <= set(result.scores["n0"])
    assert "Permit" not in result.ran
    assert "PostFilter" not in result.ran
    assert harness.schedule("a") == result


def test_the_seed_chooses_among_equal_nodes() -> None:
    chosen = {PluginHarness(nodes=["n0", "n2"], pods=["a"], seed=seed).schedule().node for seed in range(8)}
    assert chosen == {"n0", "n2"}


def test_no_node_fits() -> None:
    result = PluginHarness(nodes=["n1"], pods=["a"], plugins=[OnlyEven]).schedule("default/a")
    assert result.node == ""
    assert result.message == "0/1 nodes are available: 1 odd node."
    assert "Node/Add" in result.requeue_events
    assert result.ran["PostFilter"] == ("DynamicResources", "DefaultPreemption")
    assert result.victims == ()


def test_the_victims_of_a_preemption() -> None:
    pods = [pod("low", cpu="4", nodeName="n0", priority=1), pod("high", cpu="3", priority=10)]
    result = PluginHarness(nodes=["n0"], pods=pods).schedule()
    assert (result.pod, result.node) == ("default/high", "")
    assert result.preemption is not None
    assert result.preemption.node == "n0"
    assert result.victims == ("default/low",)


def test_permit_and_pre_enqueue() -> None:
    waiting = PluginHarness(nodes=["n0"], pods=["a"], plugins=[Slow]).schedule()
    assert (waiting.node, waiting.waits, waiting.ran["Permit"]) == ("n0", {"Slow": 5.0}, ("Slow",))
    refused = {**pod("a"), "metadata": {"name": "a", "labels": {"no": ""}}}
    rejected = PluginHarness(nodes=["n0"], pods=[refused], plugins=[Slow]).schedule()
    assert (rejected.node, rejected.best) == ("", ("n0",))
    assert rejected.message == "0/1 nodes are available: 1 not now."
    gated = PluginHarness(nodes=["n0"], pods=["a"], plugins=[Gate]).schedule()
    assert gated.gate is not None
    assert (gated.node, gated.gate.plugin, gated.gate.reasons) == ("", "Gate", ("closed",))


def test_a_plugin_that_fails() -> None:
    with pytest.raises(ExplainError, match="no such thing") as raised:
        PluginHarness(nodes=["n0"], pods=["a"], plugins=[Broken]).schedule()
    assert isinstance(raised.value.__cause__, LookupError)


class Nameless(FilterPlugin):
    """Has no name for profiles."""


class Yes(FilterPlugin):
    """Returns True, which is no status."""

    name = "Yes"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return True  # type: ignore[return-value]  # as a plugin without annotations does


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (Nameless, r'test_harness:Nameless": its class has no name = "\.\.\." for profiles'),
        (
            int,
            r'"builtins:int": expected a subclass of nominee\.scheduler\.framework\.interface\.Plugin, got',
        ),
        (5, r'"5": expected a subclass of .*Plugin, got an instance of int'),
        (Yes(), "expected a subclass of .*Plugin, got an instance of Yes"),
    ],
)
def test_an_object_that_is_no_plugin_is_named(plugin: Any, message: str) -> None:
    with pytest.raises(PluginLoadError, match=message):
        PluginHarness(nodes=["n0"], pods=["a"], plugins=[plugin])


def test_a_filter_that_returns_no_status() -> None:
    message = (
        r'running "Yes" filter plugin: TypeError: filter returned True \(bool\); expected None or a Stat'
    )
    with pytest.raises(ExplainError, match=message):
        PluginHarness(nodes=["n0", "n1"], pods=["a"], plugins=[Yes]).schedule()


def test_profiles_versions_and_gates() -> None:
    only = {"plugins": {"filter": {"enabled": [{"name": "OnlyEven"}], "disabled": [{"name": "*"}]}}}
    result = PluginHarness(
        nodes=["n0"], pods=[pod("a", cpu="99")], plugins=[OnlyEven], profile=only
    ).schedule()
    assert (result.node, result.ran["Filter"]) == ("n0", ("OnlyEven",))
    named = {**only, "schedulerName": "other"}
    with pytest.raises(ValueError, match="no profile has the name default-scheduler"):
        PluginHarness(nodes=["n0"], pods=["a"], plugins=[OnlyEven], profile=named).schedule()
    with pytest.raises(ProfileError, match="plugin does not exist"):
        PluginHarness(nodes=[], pods=[], profile=only)
    with pytest.raises(ConfigError, match="plugns"):
        PluginHarness(nodes=[], pods=[], profile={"plugns": {}})
    with pytest.raises(ValueError, match="NoSuchGate"):
        PluginHarness(nodes=[], pods=[], emulated_version="1.36", feature_gates={"NoSuchGate": True})


def test_a_plugin_by_its_path() -> None:
    path = f"{__name__}:OnlyEven"
    assert PluginHarness(nodes=["n1"], pods=["a"], plugins=[path]).schedule().node == ""


def test_the_pod_must_be_pending() -> None:
    harness = PluginHarness(nodes=["n0"], pods=["a", "b", pod("c", nodeName="n0")])
    with pytest.raises(ValueError, match="name one of the pending pods: default/a, default/b"):
        harness.schedule()
    with pytest.raises(ValueError, match=r"no pod default/c is pending; pending pods: default/a, default/b"):
        harness.schedule("c")
