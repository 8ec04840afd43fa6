"""Daemon sets at rest: each fitting node has its pod. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from nominee.lab.chaos.rest.state import Finding, State, name_of
from nominee.lab.chaos.rest.workloads.owners import CONTROLLERS, age_of, due_of, live_pods, wrong_numbers
from nominee.lab.chaos.rest.workloads.refusals import may_refuse
from nominee.lab.chaos.rest.workloads.revisions import REVISION, latest_revision
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import condition_is, has_ended, is_controlled_by, is_terminating
from nominee.machinery.api.pb import apps, core
from nominee.machinery.scheduling.daemons import NodeRules, target_node


def daemon_sets(state: State) -> Iterator[Finding]:
    """Find nodes without the pod of a daemon set, or with one that they should not have; and its numbers.

    One that waits for a pod to become ready may have two on a node for ever, and pods may be refused.
    """
    if CONTROLLERS not in state.running:
        return
    for each in state.of(kinds.DAEMON_SET):
        if is_terminating(each):
            continue
        rules, pods = NodeRules.of(each.spec.template.spec), live_pods(state, each)
        ready = sum(condition_is(pod.status.conditions, "Ready") for pod in pods)
        due = due_of(pods, each.spec.minReadySeconds, state.now) if ready == len(pods) else None
        on_node = Counter(map(target_node, pods))
        running: set[str] = set()
        for node in state.of(kinds.NODE):
            name, (runs, keeps) = node.metadata.name, rules.verdict(node)
            running.update([name] if runs else [])
            count = on_node[name]
            if runs and not count and not may_refuse(state, each):
                yield Finding(name_of(each), f"has no live pod on the node {name}")
            elif count > 1 and due is not None:
                yield Finding(name_of(each), f"has {count} live pods on the node {name}", due=due)
            elif count and not keeps:
                yield Finding(name_of(each), f"has a pod on the node {name}, which does not fit")
        yield from _numbers(state, each, running)


def _numbers(state: State, of: apps.DaemonSet, running: set[str]) -> Iterator[Finding]:
    """Find wrong numbers: of each node of `running` the oldest pod counts, perhaps one that failed.

    A pod on another node is misscheduled, also where a NoSchedule taint lets it stay
    (kube-controller-manager 1.36, daemon_controller.go, updateDaemonSetStatus).
    """
    on_node: dict[str, core.Pod] = {}
    for pod in sorted(state.pods_by_namespace.get(of.metadata.namespace, ()), key=_age_of):
        if is_controlled_by(pod, of) and not (is_terminating(pod) and has_ended(pod)):
            on_node.setdefault(target_node(pod), pod)
    pods = [pod for name, pod in on_node.items() if name in running]
    desired, ready = len(running), sum(condition_is(pod.status.conditions, "Ready") for pod in pods)
    numbers = {"desiredNumberScheduled": desired, "currentNumberScheduled": len(pods), "numberReady": ready}
    numbers["numberMisscheduled"] = len(on_node.keys() & state.node_names - running)
    if (latest := latest_revision(state, of)) is not None:
        labels = [pod.metadata.labels.get(REVISION) for pod in pods]
        numbers["updatedNumberScheduled"] = labels.count(latest.metadata.labels.get(REVISION))
    yield from wrong_numbers(of, numbers)
    if (due := due_of(pods, of.spec.minReadySeconds, state.now)) is not None:
        yield from wrong_numbers(of, {"numberAvailable": ready, "numberUnavailable": desired - ready}, due)


def _age_of(pod: core.Pod) -> tuple[bool, float, str]:
    return not pod.spec.nodeName, *age_of(pod)


def has_bare_nodes(state: State, of: apps.DaemonSet) -> bool:
    """Return whether a node is without its pod of a set, which may have as many pods as it should."""
    rules, taken = NodeRules.of(of.spec.template.spec), set(map(target_node, live_pods(state, of)))
    return any(rules.verdict(node)[0] for node in state.of(kinds.NODE) if node.metadata.name not in taken)
