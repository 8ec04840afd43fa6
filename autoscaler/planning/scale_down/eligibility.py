"""Eligibility of nodes for scale-down, before their removal is simulated. Pure.

Source: cluster-autoscaler 1.36, core/scaledown/eligibility.
"""

from __future__ import annotations

from collections.abc import Iterable

from nominee.autoscaler.options import Options
from nominee.autoscaler.planning.objects import annotation_keys, readiness, taints
from nominee.autoscaler.planning.scale_down.device_utilization import device_utilization
from nominee.autoscaler.planning.scale_down.scale_down_input import ScaleDownInput
from nominee.autoscaler.planning.scale_down.unremovable import Reason, Unremovable, UnremovableNodes
from nominee.autoscaler.planning.scale_down.utilization import Utilization, has_gpu, utilization
from nominee.machinery.api.pb import core
from nominee.scheduler.framework.types import NodeInfo


def filter_out_unremovable(
    options: Options, inputs: ScaleDownInput, candidates: Iterable[core.Node], unremovable: UnremovableNodes
) -> tuple[list[core.Node], dict[str, Utilization]]:
    """Return the eligible candidates, and the utilization of all candidates for which it was calculated.

    The reasons of the others are added to `unremovable`. Nodes that are being deleted have none.
    """
    deleted = inputs.deletions.nodes()
    eligible: list[core.Node] = []
    utilizations: dict[str, Utilization] = {}
    for node in candidates:
        name = node.metadata.name
        if name in deleted:
            continue
        info = inputs.snapshot.get(name)
        if info is None:
            reason: Reason | None = Reason.NO_NODE_INFO
        elif unremovable.is_recent(name):
            reason = Reason.RECENTLY_UNREMOVABLE
        else:
            reason = _reason(options, inputs, node)
            if reason is None:
                used = _utilization(options, inputs, info)
                reason = _utilization_reason(options, info, used)
                if used is not None:
                    utilizations[name] = used
        if reason is None:
            eligible.append(node)
        else:
            unremovable.add(name, Unremovable(reason))
    return eligible, utilizations


def has_scale_down_disabled(node: core.Node) -> bool:
    """Report whether the node's annotation disables its scale-down."""
    return node.metadata.annotations.get(annotation_keys.SCALE_DOWN_DISABLED) == "true"


def _reason(options: Options, inputs: ScaleDownInput, node: core.Node) -> Reason | None:
    """Return why a node is not eligible whatever its utilization, or None."""
    if taints.is_being_deleted(node, inputs.at.now):
        return Reason.CURRENTLY_BEING_DELETED
    if has_scale_down_disabled(node):
        return Reason.SCALE_DOWN_DISABLED
    if inputs.view.group(node.metadata.name) is None:
        return Reason.NOT_AUTOSCALED
    if not options.scale_down_unready_enabled and not readiness.is_ready(node):
        return Reason.SCALE_DOWN_UNREADY_DISABLED
    return None


def _utilization_reason(options: Options, info: NodeInfo, used: Utilization | None) -> Reason | None:
    if used is None:
        return Reason.UNEXPECTED_ERROR
    threshold = options.scale_down_utilization_threshold
    if has_gpu(info):
        threshold = options.scale_down_gpu_utilization_threshold
    return Reason.NOT_UNDERUTILIZED if used.share > threshold else None


def _utilization(options: Options, inputs: ScaleDownInput, info: NodeInfo) -> Utilization | None:
    """Return the utilization of a node: of its GPUs or else devices alone, if it has any."""
    devices = inputs.snapshot.devices
    slices = devices.slices.of_node(info.name)
    if slices and not has_gpu(info):
        pods = inputs.snapshot.pods_on(info.name)
        return device_utilization(slices, [claim for pod in pods for claim in devices.claims_of(pod)])
    return utilization(
        info,
        inputs.at.now,
        skip_daemons=options.ignore_daemonsets_utilization,
        skip_mirrors=options.ignore_mirror_pods_utilization,
    )
