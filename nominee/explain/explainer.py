"""Explain the pods of clusters that are files."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nominee.explain.cluster import Cluster, build_cluster
from nominee.explain.files import ClusterFile
from nominee.explain.what_if import change
from nominee.machinery.features.gates import DEFAULT, Gates, Version
from nominee.machinery.runtime.clock import Clock
from nominee.scheduler.explanation.document import pod_explanation
from nominee.scheduler.explanation.format import PodExplanation
from nominee.scheduler.explanation.verdict import explain
from nominee.scheduler.framework.interface import Plugin
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.framework.runtime.profile import Profile
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.registry import IN_TREE

_PENDING_NAMED_MAX = 10  # pending pods that an error names


class PodError(ValueError):
    """The pod cannot be explained: it does not exist, is bound, or belongs to another scheduler."""


@dataclass(frozen=True, slots=True)
class Setup:
    """Settings of the scheduler: version, gates, profiles and the plugins that they may name.

    `gates` are set on top of those of the file. Without `profiles` the default profile decides. `changes`
    are made to the manifests first (`what_if`).
    """

    version: Version = DEFAULT
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
            gates=Gates("scheduler", self.version, {**file.gates, **self.gates}),
            clock=clock,
            rng=random.Random(0),
            profiles=self.profiles,
            classes=self.classes,
        )


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
            verdict = explain(_framework(cluster, info), cluster.snapshot, info)
            yield pod_explanation(verdict, cluster=name)
    except PodError as error:
        raise PodError(f"{name}: {error}" if name else str(error)) from None


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
    if node:
        raise PodError(f"pod {key} is already on node {node}")
    return [key]


def _framework(cluster: Cluster, pod: PodInfo) -> Framework:
    framework = cluster.framework_of(pod)
    if framework is None:
        profiles = ", ".join(cluster.frameworks)
        raise PodError(
            f"pod {pod.key} has the schedulerName {pod.pod.spec.schedulerName}; profiles: {profiles}"
        )
    return framework
