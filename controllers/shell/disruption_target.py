"""Ends a pod that a controller evicts: its DisruptionTarget condition says why (KEP-3329)."""

from __future__ import annotations

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import ignoring, is_not_found
from nominee.machinery.api.objects import copy_of, set_condition
from nominee.machinery.api.pb import core, meta
from nominee.machinery.client.api_client import Client


async def disrupt(client: Client, pod: core.Pod, now: meta.Time, *, reason: str, message: str) -> None:
    """Set DisruptionTarget and delete the pod with this uid. Raises: StatusError, but not for NotFound."""
    marked = copy_of(pod)
    condition = core.PodCondition(
        type="DisruptionTarget",
        status="True",
        reason=reason,
        message=message,
        observedGeneration=pod.metadata.generation,
    )
    if set_condition(marked.status.conditions, condition, now):
        await client.update(marked, subresource="status")
    with ignoring(is_not_found):
        await client.delete(kinds.POD, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid)
