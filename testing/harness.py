"""One scheduling cycle in the test's own process, for the author of a plugin: `PluginHarness`.

No other process runs, nothing is written. Reserve and Permit run on the chosen node; PreBind, Bind and
PostBind, which do I/O, do not.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nominee.explain.cluster import Cluster, build_cluster
from nominee.machinery.features.gates import DEFAULT, Gates, parse_emulated_version
from nominee.machinery.runtime.clock import SystemClock
from nominee.machinery.wire.values.scalars import Json
from nominee.scheduler.attempts.pod import Failed, Scheduled, claim
from nominee.scheduler.configuration import config
from nominee.scheduler.configuration.profiles import build_profile
from nominee.scheduler.explanation.verdict import Preemption, Rejection, Verdict, explain
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Plugin
from nominee.scheduler.framework.runtime.instrumentation import hooks_of
from nominee.scheduler.framework.scheduling.algorithm import ScheduleResult
from nominee.scheduler.plugin_loader import by_path, plugin_class
from nominee.scheduler.plugins import registry
from nominee.scheduler.result_recorder import ResultRecorder, results_of
from nominee.scheduler.simulator_results import Results
from nominee.testing.up_words import configuration

Document = Mapping[str, Json]
CAPACITY: Final = {"cpu": "4", "memory": "16Gi", "pods": "110"}
"""Of a node that is given by its name only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleResult:
    """The decision about a pod.

    `node` is where the pod goes, "" nowhere; `best` are all nodes that are as good, `scores` the weighted
    scores by node and plugin (empty if there was no choice). `rejections` has each other node with the plugin
    that rejected it, and `gate` the rejection by PreEnqueue. `answers` are those of the Filter plugins by
    node and plugin, `passed` or the reasons; `ran` the plugins that ran, by extension point. `waits` are the
    seconds that Permit plugins let the pod wait for.

    For a pod without a node `message` is that of its FailedScheduling event (without the part of preemption),
    `preemption` the node and the victims, and `requeue_events` the events that bring it back into the queue.
    """

    pod: str
    node: str
    best: tuple[str, ...]
    scores: Mapping[str, Mapping[str, int]]
    rejections: Mapping[str, Rejection]
    gate: Rejection | None
    answers: Mapping[str, Mapping[str, str]]
    ran: Mapping[str, tuple[str, ...]]
    waits: Mapping[str, float] = field(default_factory=dict)
    message: str = ""
    preemption: Preemption | None = None
    requeue_events: tuple[str, ...] = ()

    @property
    def victims(self) -> tuple[str, ...]:
        """Return the pods that preemption evicts from its node, `namespace/name`."""
        chosen = self.preemption.node if self.preemption is not None else ""
        candidates = self.preemption.candidates if self.preemption is not None else ()
        return tuple(str(victim.key) for each in candidates if each.node == chosen for victim in each.victims)


class PluginHarness:
    """A cluster of objects for scheduling cycles: `PluginHarness(nodes=["a"], pods=["p"], plugins=[Mine])`.

    Args:
        nodes: manifests, or names of nodes with 4 CPUs, 16 GiB and the label kubernetes.io/hostname.
        pods: manifests, or names of pods without requests. Those with spec.nodeName run there.
        plugins: plugins from outside, classes or texts `module:Class`.
        profile: a profile of KubeSchedulerConfiguration, or a whole configuration. Without one, the default
            profile with all of `plugins`.
        objects: manifests of other objects: volumes, PodDisruptionBudgets, ...
        emulated_version, feature_gates: those of the scheduler.
        seed: of the choice among nodes that are as good.

    Raises:
        ConfigError, ProfileError, PluginLoadError, GateError: profile, plugins or gates are wrong.
    """

    def __init__(
        self,
        *,
        nodes: Sequence[str | Document],
        pods: Sequence[str | Document],
        plugins: Sequence[str | type[Plugin]] = (),
        profile: Document | None = None,
        objects: Sequence[Document] = (),
        emulated_version: str = "",
        feature_gates: Mapping[str, bool] | None = None,
        seed: int = 0,
    ) -> None:
        self._manifests = [*map(_node, nodes), *map(_pod, pods), *objects]
        version = parse_emulated_version(emulated_version) if emulated_version else DEFAULT
        self._gates, self._seed = Gates("scheduler", version, dict(feature_gates or {})), seed
        found = [by_path(each) if isinstance(each, str) else plugin_class(each) for each in plugins]
        self._classes = {**registry.IN_TREE, **{each.name: each for each in found}}
        if profile is None:
            document = configuration(each.name for each in found)
        elif "kind" in profile:
            document = profile
        else:
            document = {**configuration(()), "profiles": [profile]}
        defaults = registry.default_plugins(self._gates)
        profiles = config.read(document).profiles
        self._profiles = [build_profile(each, self._classes, defaults) for each in profiles]

    def schedule(self, pod: str = "") -> CycleResult:
        """Run a cycle for a pod, `name` or `namespace/name`; by default for the only one that is pending.

        Each call begins with the objects as they were given, and new plugins.

        Raises:
            DecodeError, StatusError: a manifest is wrong.
            ExplainError: a plugin failed.
            ValueError: there is no such pod, or no profile for it, or several are pending.
        """
        rng = random.Random(self._seed)
        cluster = build_cluster(
            self._manifests,
            gates=self._gates,
            clock=SystemClock(),
            rng=rng,
            profiles=self._profiles,
            classes=self._classes,
        )
        info = cluster.pods[_key(cluster, pod)]
        framework = cluster.framework_of(info)
        if framework is None:
            raise ValueError(f"no profile has the name {info.pod.spec.schedulerName} (of pod {info.key})")
        post_filters = _PostFilters()
        state = CycleState(hooks_of(ResultRecorder(framework), post_filters))
        verdict = explain(framework, cluster.snapshot, info, state=state)
        claimed: Scheduled | Failed | None = None
        if verdict.selected:
            found = ScheduleResult(rng.choice(verdict.selected), 0, len(verdict.feasible), 0)
            claimed = claim(framework, cluster.cache, state, info, found)
        return _result(verdict, results_of(state) or Results(), post_filters.names, claimed)


class _PostFilters:
    """Records the PostFilter plugins that run (`PluginHooks`)."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def post_filter(self, state: CycleState, plugin: str, *answer: object) -> None:
        self.names.append(plugin)


def _result(
    verdict: Verdict, results: Results, post_filters: Sequence[str], claimed: Scheduled | Failed | None
) -> CycleResult:
    points: Mapping[str, Collection[str]] = {
        "PreFilter": results.prefilter_status,
        "Filter": _plugins(results.filter),
        "PostFilter": post_filters,
        "PreScore": results.prescore,
        "Score": _plugins(results.score),
        "Reserve": results.reserve,
        "Permit": results.permit,
    }
    return CycleResult(
        pod=str(verdict.pod.key),
        node=claimed.node_name if isinstance(claimed, Scheduled) else "",
        best=verdict.selected,
        scores=verdict.scores,
        rejections=verdict.rejected,
        gate=verdict.gate,
        answers=results.filter,
        ran={point: tuple(plugins) for point, plugins in points.items() if plugins},
        waits=claimed.waits if isinstance(claimed, Scheduled) else {},
        message=claimed.message if isinstance(claimed, Failed) else verdict.message,
        preemption=verdict.preemption,
        requeue_events=verdict.wakers,
    )


def _plugins(by_node: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the plugins that answered for some node, in their order."""
    return list(dict.fromkeys(plugin for answers in by_node.values() for plugin in answers))


def _key(cluster: Cluster, pod: str) -> str:
    pending = [str(each.key) for each in cluster.pending()]
    if not pod and len(pending) != 1:
        raise ValueError(f"name one of the pending pods: {', '.join(pending) or 'none'}")
    key = pod if "/" in pod else f"default/{pod}" if pod else pending[0]
    if key not in pending:
        raise ValueError(f"no pod {key} is pending; pending pods: {', '.join(pending) or 'none'}")
    return key


def _node(given: str | Document) -> Document:
    if not isinstance(given, str):
        return {"apiVersion": "v1", "kind": "Node", **given}
    metadata = {"name": given, "labels": {"kubernetes.io/hostname": given}}
    status = {"allocatable": CAPACITY, "capacity": CAPACITY}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def _pod(given: str | Document) -> Document:
    if not isinstance(given, str):
        return {"apiVersion": "v1", "kind": "Pod", **given}
    spec = {"containers": [{"name": "c", "image": "pause"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": given}, "spec": spec}
