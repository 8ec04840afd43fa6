"""Pods with the spec of one that came before get the same defaults, verdicts and bytes as the first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nominee.apiserver.kinds.core.pods import validation as validation
from nominee.apiserver.validation.pods import warnings as pod_warnings
from nominee.machinery import defaults
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates
from nominee.machinery.wire import envelope, presence

_TEXTS = st.sampled_from(["", "a", "b-c", "A_", "x" * 64])
_AMOUNTS = st.sampled_from(["", "1", "100m", "0.5Gi", "-1", "1.5"])


@st.composite
def _pods(draw: st.DrawFn) -> core.Pod:
    pod = core.Pod()
    pod.metadata.name, pod.metadata.namespace = draw(_TEXTS), "default"
    if draw(st.booleans()):
        pod.metadata.annotations["seccomp.security.alpha.kubernetes.io/pod"] = draw(_TEXTS)
    for _ in range(draw(st.integers(0, 2))):
        container = pod.spec.containers.add(name=draw(_TEXTS), image=draw(_TEXTS))
        container.ports.add(containerPort=draw(st.integers(-1, 2)))
        container.resources.limits["memory"].string = draw(_AMOUNTS)
        container.resources.requests["cpu"].string = draw(_AMOUNTS)
    if draw(st.booleans()):
        volume = pod.spec.volumes.add(name=draw(_TEXTS))
        volume.volumeSource.ephemeral.SetInParent()
    return pod


@given(pods=st.lists(_pods(), min_size=2, max_size=4))
def test_the_rules_of_pods_say_the_same_the_second_time(pods: list[core.Pod]) -> None:
    gates = Gates("apiserver")
    for pod in pods:
        again = core.Pod()
        again.CopyFrom(pod)
        # The same spec under another name.
        again.metadata.name += "-2"
        for each in (pod, again):
            defaults.apply(kinds.POD, each, gates)
        assert again.spec == pod.spec
        verdicts = [(validation.create(each), pod_warnings.of_pod(each)) for each in (pod, again)]
        for verdict in validation._spec_without_volumes.values():
            verdict.clear()
        pod_warnings._of_spec.clear()
        assert (validation.create(again), pod_warnings.of_pod(again)) == verdicts[1]
        alone = core.Pod()
        alone.CopyFrom(again)
        presence.fill(alone)
        for each in (pod, again):
            presence.fill_pod(each)
        assert envelope.encode(again) == envelope.encode(alone)
