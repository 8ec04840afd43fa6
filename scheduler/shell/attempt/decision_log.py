"""Log the scheduler's decisions: at info one line for each, at debug also the plugins' answers.

The wording is kube-scheduler's, which has most of these lines at verbosity 2 and more.
"""

from __future__ import annotations

from collections.abc import Mapping
from logging import DEBUG
from typing import TYPE_CHECKING, Final

import numpy as np

from nominee.machinery.api.objects import key_of
from nominee.machinery.runtime import logs
from nominee.scheduler.attempts.pod import Failed, Reason, Scheduled
from nominee.scheduler.attempts.resize import is_resize
from nominee.scheduler.dispatch.api_calls import PodStatusPatch, Purpose
from nominee.scheduler.framework.api.deferred_resize import FITS
from nominee.scheduler.shell.attempt.attempt_log import rejections_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nominee.machinery.api.pb import core
    from nominee.scheduler.framework.cluster.snapshot import Snapshot
    from nominee.scheduler.framework.cycle_state import CycleState
    from nominee.scheduler.framework.interface import PostFilterResult
    from nominee.scheduler.framework.types import PodInfo
    from nominee.scheduler.shell.attempt.attempt import Attempt

_SCORES: Final = "nominee.dev/logged-scores"
_NODES_MAX: Final = 5
"""Nodes whose scores are logged, the best first."""
_log = logs.get()


def is_detailed() -> bool:
    """Return whether the answers of plugins are logged."""
    return bool(_log.is_enabled_for(DEBUG))


def log_bound(attempt: Attempt, seconds: float) -> None:
    """Log a pod that was bound; `seconds` since it was popped."""
    found = attempt.scheduled
    assert found is not None, "a bound pod has a node"
    _log.info(
        "Successfully bound pod to node",
        pod=attempt.pod.key,
        node=found.node_name,
        evaluatedNodes=found.evaluated,
        feasibleNodes=found.feasible,
        seconds=f"{seconds:.6f}",
    )


def log_failed(attempt: Attempt, failed: Failed, seconds: float) -> None:
    """Log an attempt that found no node; errors have a line of their own."""
    if failed.reason is not Reason.UNSCHEDULABLE:
        return
    text = "Unable to schedule pod; no fit; waiting"
    labels: dict[str, object] = {"pod": attempt.pod.key}
    if is_resize(attempt.pod.pod):
        labels["node"] = attempt.pod.pod.spec.nodeName
        parks = FITS in failed.message
        text = "Deferred resize parked" if parks else "Deferred resize does not fit; waiting"
    _log.info(text, **labels, err=failed.message, seconds=f"{seconds:.6f}")


def log_preemption(attempt: Attempt, result: PostFilterResult) -> None:
    """Log the victims of a preemption, and the criterion by which their node was chosen."""
    candidate = result.candidate
    if candidate is not None:
        _log.info(
            "Preemptor pod preempts victims",
            preemptor=attempt.pod.key,
            node=candidate.node,
            victims=",".join(str(victim.key) for victim in candidate.victims),
            priority=attempt.pod.priority,
            victimPriorities=",".join(str(victim.priority) for victim in candidate.victims),
            numPDBViolations=candidate.pdb_violations,
            chosenBy=result.chosen_by,
        )


def log_nomination(call: PodStatusPatch, before: str) -> None:
    """Log a nomination that was written or cleared, and the reason; `before` is the earlier one."""
    node = call.node_name
    if node is None or node == before:
        return
    if call.purpose is Purpose.NOMINATE:
        why = "the binding may take long"
    elif call.purpose is Purpose.CLEAR:
        why = "a pod of higher priority preempts on the node"
    elif not call.reason:
        why = "the deferred resize waits for preemption" if node else "the resize is not deferred any more"
    else:
        why = "preemption makes room there" if node else f"the attempt failed: {call.reason}"
    if node:
        _log.info("Nomination written", pod=call.key, node=node, before=before, reason=why)
    else:
        _log.info("Nomination cleared", pod=call.key, node=before, reason=why)


def log_resize(pod: core.Pod, change: str, reason: str) -> None:
    """Log a deferred resize that entered the queue, left it, or was kept out of it."""
    _log.info(f"Deferred resize {change}", pod=key_of(pod), node=pod.spec.nodeName, reason=reason)


def log_answers(pod: PodInfo, state: CycleState, outcome: Scheduled | Failed) -> None:
    """Log the answers of the plugins: which rejected nodes and why, and the scores of the best nodes."""
    if isinstance(outcome, Failed) and outcome.fit_error is not None:
        for each in rejections_of(outcome.fit_error):
            _log.debug(
                "Plugin rejected nodes",
                pod=pod.key,
                plugin=each["plugin"],
                code=each["code"],
                nodes=each["nodeCount"],
                first=",".join(each["nodes"]),
                reasons="; ".join(each["reasons"]),
            )
    scores: Mapping[str, str] | None = state.get(_SCORES)
    for node, text in (scores or {}).items():
        _log.debug("Plugins scored node", pod=pod.key, node=node, scores=text)


def keep_scores(
    state: CycleState, snapshot: Snapshot, rows: NDArray[np.intp], scores: dict[str, NDArray[np.int64]]
) -> None:
    """Keep the weighted scores of the best nodes in the attempt's state, for `log_answers`: a hook."""
    if not scores:
        return
    total = np.sum(list(scores.values()), axis=0)
    best = np.argsort(-total, kind="stable")[:_NODES_MAX]
    texts = {
        snapshot.nodes[int(rows[index])].name: " ".join(
            [f"total={total[index]}", *(f"{plugin}={found[index]}" for plugin, found in scores.items())]
        )
        for index in best.tolist()
    }
    state.write(_SCORES, texts)
