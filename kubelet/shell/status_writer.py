"""Writes pod statuses to the API server, as a real kubelet does: strategic merge patches of what changed."""

from __future__ import annotations

from dataclasses import replace

import anyio

from kubelet.shell.agent import Agent
from kubelet.shell.points import DELETE_BEFORE, STATUS_AFTER, STATUS_BEFORE
from kubelet.status.pod_status import View, build
from machinery.api import errors, kinds
from machinery.api.objects import key_of, resource_version_of
from machinery.api.pb import core
from machinery.client.api_client import Client
from machinery.patch.strategic_diff import diff_strategic
from machinery.wire import presence
from machinery.wire.codec import to_json


class StatusWriter:
    """Patches and deletions, a bounded number at once. Raises StatusError where trying again may help."""

    def __init__(self, client: Client, *, requests_max: int = 16) -> None:
        self._client = client
        self._limiter = anyio.Semaphore(requests_max)
        self.writes = 0

    async def write(self, agent: Agent, view: View) -> None:
        """Writes the status unless the API server has it already."""
        base = self._newest(agent, view.pod)
        status = build(replace(view, base=base.status), agent.around.status)
        presence.fill(status)  # as the API server stores it, so that equal statuses are equal messages
        patch = None if status == base.status else _patch(base, status)
        pod, key = view.pod, key_of(view.pod)
        agent.decide_status(pod.metadata.uid, base.status if patch is None else status)
        if patch is None:
            return
        await STATUS_BEFORE.hit(pod=key, node=agent.name)
        async with self._limiter:
            try:
                answer = await self._client.patch(
                    kinds.POD, key.name, key.namespace, patch, subresource="status"
                )
            except errors.StatusError as error:
                if errors.is_not_found(error):
                    return  # the watch brings the removal
                raise  # a conflict may be another pod of this name, or too many writers
        self.writes += 1
        record = agent.state.pods.get(pod.metadata.uid)
        if record is not None and resource_version_of(record.pod) < resource_version_of(answer):
            agent.written[pod.metadata.uid] = answer
        await STATUS_AFTER.hit(pod=key, node=agent.name)

    async def delete(self, agent: Agent, pod: core.Pod) -> None:
        """Removes a pod that has stopped: deletion without grace, of just this pod."""
        key = key_of(pod)
        await DELETE_BEFORE.hit(pod=key, node=agent.name)
        async with self._limiter:
            try:
                await self._client.delete(
                    kinds.POD, key.name, key.namespace, grace_period_seconds=0, uid=pod.metadata.uid
                )
            except errors.StatusError as error:
                if not errors.is_not_found(error):
                    raise

    def _newest(self, agent: Agent, pod: core.Pod) -> core.Pod:
        """The pod as the watch shows it, or as the answer to our last write, if that is newer."""
        answer = agent.written.get(pod.metadata.uid)
        if answer is None:
            return pod
        return pod if resource_version_of(pod) >= resource_version_of(answer) else answer


def _patch(base: core.Pod, status: core.PodStatus) -> dict[str, object] | None:
    """The patch of the status alone, with the uid that it is meant for; None when nothing changes."""
    change = diff_strategic("k8s.io.api.core.v1.PodStatus", to_json(base.status), to_json(status))
    if not change:
        return None
    return {"metadata": {"uid": base.metadata.uid}, "status": change}
