"""Explain the pods of clusters that are files."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nominee.explain.cluster import FINISHED, Cluster, build_cluster
from nominee.explain.files import ClusterFile
from nominee.explain.suggestions import suggestions
from nominee.explain.what_if import change
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import DEFAULT, Gates, Version
from nominee.machinery.runtime.clock import Clock
from nominee.scheduler.explanation.document import pod_explanation
from nominee.scheduler.explanation.format import PodExplanation
from nominee.scheduler.explanation.verdict import Verdict, explain, explain_resize
from nominee.scheduler.framework.api.deferred_resize import is_deferred_resize
from nominee.scheduler.framework.interface import Plugin
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.framework.runtime.profile import Profile
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.registry import IN_TREE

_SUGGESTED_MANIFESTS_MAX = 3000  # a larger cluster takes long to be built again for each change
_PENDING_NAMED_MAX = 10  # pending pods that an error names


class PodError(ValueError):
    """The pod cannot be explained: it does not exist, is bound, or belongs to another scheduler."""


@dataclass(frozen=True, slots=True)
class Setup:
    """Settings of the scheduler: version, gates, profiles and the plugins that they may name.

    Without a `version` that of the file decides. `gates` are set on top of those of the file. Without
    `profiles` the default profile decides. `changes` are made to the manifests first (`what_if`).
    """

    version: Version | None = None
    gates: Mapping[str, bool] = field(default_factory=dict)
    profiles: Sequence[Profile] = ()
    classes: Mapping[str, type[Plugin]] = field(default_factory=lambda: IN_TREE)
    changes: Sequence[str] = ()

    def build(self, file: ClusterFile, clock: Clock) -> Cluster:
        """Return the file's cluster.

        Raises:
            ChangeError: a change is not understood, or names an object that does not exist.
            GateError: a gate does not exist, or cannot be set in this version.
            ArgumentError, DecodeError, PluginConfigError, StatusError: see `build_cluster`.
        """
        return build_cluster(
            change(file.manifests, self.changes),
            gates=Gates("scheduler", self.version or file.version or DEFAULT, {**file.gates, **self.gates}),
            clock=clock,
            rng=random.Random(0),
            profiles=self.profiles,
            classes=self.classes,
        )


def with_suggestions(
    setup: Setup, file: ClusterFile, clock: Clock, cluster: Cluster, explanation: PodExplanation
) -> PodExplanation:
    """Return the explanation of a pod that fits on no node with the changes that were found to help."""
    is_hopeless = not explanation["selectedNodes"] and explanation["preEnqueue"] is None
    if not is_hopeless or "deferredResize" in explanation or len(file.manifests) > _SUGGESTED_MANIFESTS_MAX:
        return explanation
    key = explanation["pod"]
    helpful: list[str] = []
    for text in suggestions(cluster, explanation):
        if text.startswith("add ") and any(each.startswith("add ") for each in helpful):
            continue
        changed = replace(setup, changes=(*setup.changes, text)).build(file, clock)
        (again,) = explain_pods(changed, key)
        preemption = again["preemption"]
        evicts = preemption is not None and bool(preemption["victims"]) and "priority=" in text
        had = explanation["preemption"] is not None and bool(explanation["preemption"]["victims"])
        if again["selectedNodes"] or (evicts and not had):
            helpful.append(text)
    return {**explanation, "helpfulChanges": helpful}


def explain_pods(cluster: Cluster, pod: str = "", *, name: str = "") -> Iterator[PodExplanation]:
    """Yield the explanation of one pod, or of every pending pod.

    Args:
        cluster: must not be explained a second time, since plugins keep what they decided.
        pod: `namespace/name`, or a name in the namespace default; "" for every pending pod.
        name: the cluster's name, where one file holds several.

    Raises:
        PodError: the pod cannot be explained, or no pod is pending.
        ExplainError: a plugin failed.
    """
    try:
        keys = _keys(cluster, pod)
        for key in keys:
            info = cluster.pods[key]
            framework = _framework(cluster, info)
            if info.pod.spec.nodeName:
                verdict = explain_resize(
                    framework, cluster.snapshot, info, cluster.features.resize_preemption
                )
            else:
                verdict = explain(framework, cluster.snapshot, info)
            yield pod_explanation(verdict, cluster=name)
    except PodError as error:
        raise PodError(f"{name}: {error}" if name else str(error)) from None


def answers(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Yield each pod of a cluster and the answer about it; a bound pod is taken off its node for it.

    Raises:
        ExplainError: a plugin failed.
    """
    for key, info in list(cluster.pods.items()):
        framework = cluster.framework_of(info)
        if framework is None or info.pod.status.phase in FINISHED:
            continue
        cluster.cache.update_snapshot(cluster.snapshot)
        if is_deferred_resize(info.pod):
            verdict = explain_resize(
                framework, cluster.snapshot, info, cluster.features.resize_preemption, is_live=True
            )
            yield (key, _answer(verdict))
            continue
        bound = bool(info.pod.spec.nodeName)
        subject = info
        if bound:
            cluster.cache.remove_pod(info)
            pending = core.Pod()
            pending.CopyFrom(info.pod)
            pending.spec.nodeName = ""
            subject = PodInfo(pending, cluster.features.resources)
            cluster.cache.update_snapshot(cluster.snapshot)
        yield (key, _answer(explain(framework, cluster.snapshot, subject, is_live=True)))
        if bound:
            cluster.cache.add_pod(info)


def _answer(verdict: Verdict) -> str:
    """Return where the pod goes, or why it goes nowhere, in one line."""
    resize, preemption = verdict.resize, verdict.preemption
    if verdict.gate is not None:
        return f"is not scheduled: {'; '.join(verdict.gate.reasons)}"
    start = "" if resize is None else "the resize is deferred; "
    if preemption is not None and preemption.node:
        best = next(each for each in preemption.candidates if each.node == preemption.node)
        victims = ", ".join(str(victim.key) for victim in best.victims)
        return f"{start}preemption on {preemption.node} evicts {victims}"
    if resize is not None and verdict.feasible:
        return "the resize fits"
    if verdict.selected:
        return f"goes to {' or '.join(verdict.selected)}"
    disabled_by = "" if resize is None else resize["preemptionDisabledBy"]
    return f"{start}{disabled_by}" if disabled_by else verdict.message


def _keys(cluster: Cluster, pod: str) -> list[str]:
    pending = [str(info.key) for info in cluster.pending()]
    if not pod:
        if not pending:
            raise PodError("no pod waits for a node; name one with --pod")
        return pending
    key = pod if "/" in pod else f"default/{pod}"
    if key not in cluster.pods:
        more = len(pending) - _PENDING_NAMED_MAX
        names = ", ".join(pending[:_PENDING_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
        raise PodError(f"there is no pod {key}; pending pods: {names or 'none'}")
    node = cluster.pods[key].pod.spec.nodeName
    if node and not is_deferred_resize(cluster.pods[key].pod):
        raise PodError(
            f"pod {key} is already on node {node}, and its resize is not deferred; "
            f"--what-if 'drain node {node}' shows where it would go"
        )
    return [key]


def _framework(cluster: Cluster, pod: PodInfo) -> Framework:
    framework = cluster.framework_of(pod)
    if framework is None:
        profiles = ", ".join(cluster.frameworks)
        raise PodError(
            f"pod {pod.key} has the schedulerName {pod.pod.spec.schedulerName}; profiles: {profiles}"
        )
    return framework
