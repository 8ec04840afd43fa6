"""The steps that the API server sees: the pod's status, and its deletion. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nominee.kubelet import instructions
from nominee.kubelet.instructions import PodInstruction
from nominee.kubelet.pod_sync.step import Pass
from nominee.kubelet.pods.record import TERMINAL_PHASES, PodRecord
from nominee.kubelet.status.pod_status import View, build
from nominee.machinery.api.objects import (
    copy_of,
    get_condition,
    is_terminating,
    key_of,
    resource_version_of,
)
from nominee.machinery.api.pb import core
from nominee.machinery.patch.strategic_diff import diff_strategic
from nominee.machinery.wire import presence
from nominee.machinery.wire.codec import to_json


def report(p: Pass) -> PodInstruction | None:
    """Write the status, unless the API server has it already.

    The values of a write without an answer keep their times in the next one. Source: kubelet 1.36,
    updateStatusInternal, which compares with the status that was decided on last, written or not.
    """
    record, sync = p.record, p.record.sync
    if record.pod.status.phase in TERMINAL_PHASES:
        return None  # it never comes back
    base = _newest(record)
    status = build(view(p, base.status), p.node.settings.status)
    if sync.unanswered is not None:
        _keep_times(status, base.status, sync.unanswered)
    presence.fill(status)  # as the API server stores it, so that equal statuses are equal messages
    patch = None if _same_but_probe_times(status, base.status) else _status_patch(base, status)
    if sync.last is not None:
        # Before it is written: the watch may be faster.
        sync.last = replace(sync.last, status=base.status if patch is None else status)
    sync.unanswered = None if patch is None else status
    if patch is None:
        return None
    return instructions.PatchStatus(record.uid, key_of(record.pod), patch, status)


def delete(p: Pass) -> PodInstruction | None:
    """Delete a pod that has stopped, if its deletion has begun."""
    pod = p.record.pod
    if is_terminating(pod) and not _waits_for_finalizers(pod):
        return instructions.DeletePod(p.record.uid, key_of(pod))
    return None


def take_answer(record: PodRecord, answer: core.Pod | None) -> None:
    """Keep the API server's answer to a status write until the watch has caught up."""
    record.sync.unanswered = None
    if answer is not None and resource_version_of(record.pod) < resource_version_of(answer):
        record.sync.answer = answer


def view(p: Pass, base: core.PodStatus) -> View:
    """Return all that the pod's status is made of, as it is now."""
    record, node = p.record, p.node
    return View(
        pod=record.pod,
        base=base,
        host_ip=node.settings.host_ip,
        now=p.at.now,
        sandbox=record.sandbox,
        allocated=node.allocated(record),
        pending=record.pending,
        in_progress=record.in_progress,
        preemption_disabled=node.resize_preemption_disabled,
        outcome=record.outcome,
        terminal=record.terminated,
        waiting=record.sync.waiting or {},
    )


def _keep_times(status: core.PodStatus, base: core.PodStatus, former: core.PodStatus) -> None:
    """Take the times of the values that `base` does not have from the former status, if that had them."""
    if former.HasField("startTime") and not base.HasField("startTime"):
        status.startTime.CopyFrom(former.startTime)
    for row in status.conditions:
        known, before = (get_condition(each.conditions, row.type) for each in (base, former))
        if before is None or before.status != row.status:
            continue
        time = before.lastTransitionTime
        if known is None or (known.status != row.status and known.lastTransitionTime.seconds <= time.seconds):
            row.lastTransitionTime.CopyFrom(time)


def _status_patch(base: core.Pod, status: core.PodStatus) -> Mapping[str, object] | None:
    """Return the patch from the status of `base`, with the uid it is meant for; None when nothing changes.

    As a real kubelet sends it: strategic merge, of the changes alone.
    """
    change = diff_strategic("k8s.io.api.core.v1.PodStatus", to_json(base.status), to_json(status))
    return {"metadata": {"uid": base.metadata.uid}, "status": change} if change else None


def _same_but_probe_times(status: core.PodStatus, base: core.PodStatus) -> bool:
    """Return whether the statuses are equal, whenever their resize conditions were evaluated.

    A retry that leaves a resize as it is writes nothing. Source: kubelet 1.36, isPodStatusByKubeletEqual.
    """
    if status == base:
        return True
    probed = {row.type: row.lastProbeTime for row in base.conditions}
    if all(row.lastProbeTime == probed.get(row.type, row.lastProbeTime) for row in status.conditions):
        return False
    same = copy_of(status)
    for row in same.conditions:
        if row.type in probed:
            row.lastProbeTime.CopyFrom(probed[row.type])
    return same == base


def _newest(record: PodRecord) -> core.Pod:
    """Return the pod as the watch shows it, or as the answer to the last write, if that is newer."""
    answer = record.sync.answer
    if answer is None or resource_version_of(record.pod) >= resource_version_of(answer):
        return record.pod
    return answer


def _waits_for_finalizers(pod: core.Pod) -> bool:
    """Return whether the deletion without grace was made already.

    The rest is up to the owners of the finalizers.
    """
    return bool(pod.metadata.finalizers) and pod.metadata.deletionGracePeriodSeconds == 0
