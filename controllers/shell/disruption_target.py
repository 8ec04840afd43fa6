"""Ends a pod that a controller evicts: its DisruptionTarget condition says why (KEP-3329)."""

from __future__ import annotations

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.objects import set_condition
from nominee.machinery.api.pb import core, meta
from nominee.machinery.client.api_client import Client


async def disrupt(client: Client, pod: core.Pod, now: meta.Time, *, reason: str, message: str) -> None:
    """Set DisruptionTarget and delete the pod with this uid. Raises: StatusError, but not for NotFound."""
    marked = core.Pod()
    marked.CopyFrom(pod)
    condition = core.PodCondition(
        type="DisruptionTarget",
        status="True",
        reason=reason,
        message=message,
        observedGeneration=pod.metadata.generation,
    )
    if set_condition(marked.status.conditions, condition, now):
        await client.update(marked, subresource="status")
    try:
        await client.delete(kinds.POD, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid)
    except StatusError as error:
        if not is_not_found(error):
            raise
