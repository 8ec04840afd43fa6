"""Restart all processes of a simulation at rest, and look for changes (lab/chaos/rest/restart.py)."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Final

from nominee.lab.chaos.rest.due import due_seconds
from nominee.lab.chaos.rest.kubelets import has_deferred_resizes
from nominee.lab.chaos.rest.leftovers import freed_by_restart, held_twice, of_gone
from nominee.lab.chaos.rest.losses import has_unwritten_attempts, losses_of
from nominee.lab.chaos.rest.nodes import has_drains, recheck_seconds
from nominee.lab.chaos.rest.observation import observe, outstanding
from nominee.lab.chaos.rest.past.cleared_nominations import cleared_nominations
from nominee.lab.chaos.rest.past.failed_pods import failed_pods
from nominee.lab.chaos.rest.perpetual import has_back_offs, runs_on
from nominee.lab.chaos.rest.restart import changes, facts, with_cleared
from nominee.lab.chaos.rest.scheduling import waits_for_flush
from nominee.lab.chaos.rest.state import Expectations, Finding, State
from nominee.lab.chaos.rest.workloads.back_offs import has_failing_jobs, has_refused_jobs, has_refused_pods
from nominee.lab.history.revision import Revision
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.localcluster.cluster import ClusterError
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError

RESTARTED_SECONDS: Final = 40.0
"""For so long the new processes have time: kubelets retry pending resizes after 30 s, as upstream's do."""
ASKED_SECONDS: Final = 65.0
"""After so long a Job whose pods a quota refused has asked again: its back-off is a minute at most
(kube-controller-manager 1.36, MaxJobApiBackOff)."""
FLUSHED_SECONDS: Final = 340.0
"""After so long a scheduler has tried each unschedulable pod again: after 5 minutes, every 30 s."""
REPLACED_SECONDS: Final = 610.0
"""After so long a Job has replaced a pod that failed: its back-off is ten minutes at most."""
DRAINED_SECONDS: Final = 150.0
"""After so long the autoscaler has deleted a node, or given up evictions that a budget refuses
(--max-pod-eviction-time)."""
LATER_SECONDS: Final = 60.0
"""A change that has gone again after this time was the start of a process."""
BETWEEN_SECONDS: Final = 1.0
"""Between two looks at what a process holds: what only one of them shows belongs to a call."""
FORGOTTEN_SECONDS: Final = (60.0, 600.0)
"""For so long a process at rest may keep an entry of an object that is gone.

The second time is for a scheduler that binds volumes for a pod that was created again: it asks for the pod by
name, until bindTimeoutSeconds are over (kube-scheduler 1.36, checkBindings).
"""
STEADY_SECONDS: Final = 12.0
"""For so long nothing changes before the restart, where the cluster came to rest only now."""
_LOOKS_MAX: Final = 10
_WAITS_MAX: Final = 6
"""How often late work, and what is due, is waited for: both may have consequences of the kind."""
_NAMED_MAX: Final = 5


async def changed_by_restart(cluster: ScenarioCluster, expectations: Expectations) -> str:
    """Return the changes that a restart of all processes makes, "" for a cluster that was at rest.

    Or the findings of the other rules, if there are some by now.
    """
    # Time has passed since the cluster came to rest.
    findings, waited = await outstanding(cluster, expectations)
    if not findings and (waited or _has_changed(await cluster.history(), cluster.clock.now())):
        await _become_steady(cluster, expectations)
        findings, _ = await outstanding(cluster, expectations)
    if findings:
        return findings
    try:
        if kept := await _kept(cluster):
            return "; ".join(sorted(map(str, kept))[:_NAMED_MAX])
        state = await observe(cluster, expectations)
        for _ in range(_WAITS_MAX):
            first = state
            # What was due may have made room that no event announces.
            if pause := _pause(state):
                state = await _later(cluster, expectations, pause)
            # A deadline that is over meanwhile is no change by the restart.
            due = due_seconds(state, RESTARTED_SECONDS + LATER_SECONDS)
            if due:
                state = await _later(cluster, expectations, due)
            # A pod that has got a node by the flush may have freed one that is being drained now. A pod that
            # waits on as before has waited for long enough.
            if not due and facts(state) == facts(first) and not has_unwritten_attempts(state):
                break
        if runs_on(state) or has_back_offs(state):
            return ""
        before, lost = facts(state), losses_of(state)
        began, held = len(await cluster.history()), cluster.holdings()
        await cluster.clock.sleep(BETWEEN_SECONDS)
        held = held_twice(held, cluster.holdings())
        await cluster.crash_all()
        found: Sequence[str] = ()
        for seconds in (RESTARTED_SECONDS, LATER_SECONDS):
            await cluster.clock.sleep(seconds)
            now, since = facts(await observe(cluster, expectations)), (await cluster.history())[began:]
            known = with_cleared(lost, before, cleared_nominations(since))
            found = list(map(str, changes(before, now, known, failed_pods(since))))
            is_smaller = any(each.value is None for each in since)
            if not is_smaller:  # else there may be less to keep now
                freed = freed_by_restart(held, cluster.holdings())
                found += [str(each) for each in freed if not known.may_free(each.object)]
            if not found:
                break
    except StatusError as error:
        return f"the API server answers, after all processes were restarted: {error.message}"
    except ClusterError as error:
        return f"the cluster cannot be observed, after all processes were restarted: {error}"
    return "; ".join(found[:_NAMED_MAX])


def _has_changed(history: Sequence[Revision], now: float) -> bool:
    """Return whether a pod has changed just now, as after a call that hung: more may follow."""
    latest = itertools.takewhile(lambda each: each.time > now - STEADY_SECONDS, reversed(history))
    return any(each.kind is kinds.POD for each in latest)


async def _kept(cluster: ScenarioCluster) -> Collection[Finding]:
    """Return the entries of objects that are gone, and that stay."""
    kept = set(of_gone(cluster.holdings()))
    for seconds in FORGOTTEN_SECONDS:
        if not kept:
            break
        await cluster.clock.sleep(seconds)
        kept &= set(of_gone(cluster.holdings()))
    return kept


def _pause(state: State) -> float:
    """Return for how long a process at rest may still wait before it goes on, as a new one does at once."""
    seconds = [recheck_seconds(state, STEADY_SECONDS)]
    if has_failing_jobs(state):
        seconds.append(REPLACED_SECONDS)
    if waits_for_flush(state) or has_unwritten_attempts(state):
        seconds.append(FLUSHED_SECONDS)
    if has_drains(state):
        seconds.append(DRAINED_SECONDS)
    if has_refused_jobs(state):
        seconds.append(ASKED_SECONDS)
    # The scenario, or a disturbance, may have started a kubelet with deferred resizes just now. The back-off
    # of the other controllers is 30 s at most.
    if has_deferred_resizes(state) or has_refused_pods(state):
        seconds.append(RESTARTED_SECONDS)
    return max(seconds)


async def _later(cluster: ScenarioCluster, expectations: Expectations, seconds: float) -> State:
    """Return the state after this time, when nothing changes any more."""
    await cluster.clock.sleep(seconds)
    await _become_steady(cluster, expectations)
    return await observe(cluster, expectations)


async def _become_steady(cluster: ScenarioCluster, expectations: Expectations) -> None:
    """Wait until no fact of the objects changes any more.

    What has just ended has consequences: a pod is replaced, and a node comes for it.
    """
    with suppress(StatusError, ClusterError):  # the rules find it
        now = facts(await observe(cluster, expectations))
        for _ in range(_LOOKS_MAX):
            await cluster.clock.sleep(STEADY_SECONDS)
            before, now = now, facts(await observe(cluster, expectations))
            if now == before:
                break
