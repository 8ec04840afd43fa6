"""Daemon sets at rest: each fitting node has its pod. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from nominee.lab.chaos.rest.state import Finding, State, name_of
from nominee.lab.chaos.rest.workloads.owners import CONTROLLERS, due_of, live_pods, wrong_numbers
from nominee.lab.chaos.rest.workloads.refusals import may_refuse
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import condition_is, has_ended, is_controlled_by, is_terminating
from nominee.machinery.api.pb import apps
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
        desired = len(running)
        yield from wrong_numbers(each, {"desiredNumberScheduled": desired})
        # A pod that stays on a node with a NoSchedule taint is not scheduled for the status.
        if len(pods) == desired and on_node.keys() == running:
            yield from wrong_numbers(each, {"currentNumberScheduled": desired})
            # The oldest pod of a node counts: perhaps one that failed, and is deleted after its back-off.
            if not any(has_ended(pod) for pod in state.of(kinds.POD) if is_controlled_by(pod, each)):
                yield from wrong_numbers(each, {"numberReady": ready})


def has_bare_nodes(state: State, of: apps.DaemonSet) -> bool:
    """Return whether a node is without its pod of a set, which may have as many pods as it should."""
    rules, taken = NodeRules.of(of.spec.template.spec), set(map(target_node, live_pods(state, of)))
    return any(rules.verdict(node)[0] for node in state.of(kinds.NODE) if node.metadata.name not in taken)
