"""Performs the instructions of one pod's sync, one after the other, and feeds their results to the core.

Failpoints are hit here, between instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import anyio

from nominee.kubelet import events, instructions
from nominee.kubelet.instructions import (
    Actuate,
    DeletePod,
    PatchStatus,
    PodInstruction,
    RuntimeCall,
    SaveCheckpoint,
)
from nominee.kubelet.pod_sync.sync import FAILURE_RETRY_SECONDS
from nominee.kubelet.shell import failpoints, metrics
from nominee.kubelet.shell.agent import Agent
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import ignoring, is_not_found, is_retryable
from nominee.machinery.api.objects import ObjectKey, key_of
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.failpoints import Failpoint, FailpointError

REQUESTS_MAX: Final = 16
"""Calls of the API server at once."""

_BEFORE: Final[Mapping[type[RuntimeCall], Failpoint]] = {
    instructions.CreateSandbox: failpoints.START_BEFORE,
    instructions.SignalContainers: failpoints.TERMINATE_BEFORE,
}
_AFTER: Final[Mapping[type[RuntimeCall], Failpoint]] = {
    instructions.StartContainers: failpoints.START_AFTER,
    instructions.StopContainers: failpoints.TERMINATE_AFTER,
}


@dataclass(slots=True)
class PodWorker:
    """The syncs of every pod of the process."""

    client: Client
    agent_of: Callable[[str], Agent | None]
    requests: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(REQUESTS_MAX))

    async def work(self, key: tuple[str, str]) -> None:
        """Sync one pod (node, uid). Does not raise: a failed sync is tried again later."""
        name, uid = key
        agent = self.agent_of(name)
        if agent is None or agent.stopped:
            return
        try:
            instruction = agent.sync(uid)
            while instruction is not None:
                result = await self._perform(agent, instruction)
                done, instruction = instruction, agent.handle(result)
                if isinstance(done, PatchStatus) and isinstance(result, events.StatusWritten):
                    await failpoints.STATUS_AFTER.hit(pod=done.pod, node=name)
        except Exception as error:  # noqa: BLE001  # one pod's trouble must not stop the others
            _log_failure(agent, uid, error)
            agent.env.timers.after(FAILURE_RETRY_SECONDS, lambda: agent.env.enqueue(name, uid))

    async def _perform(self, agent: Agent, instruction: PodInstruction) -> events.Result:
        uid = instruction.uid
        try:
            match instruction:
                case SaveCheckpoint(_, version):
                    saved = await agent.checkpointer.save_allocations(version)
                    return events.CheckpointSaved(uid=uid, version=saved, at=agent.moment())
                case PatchStatus():
                    answer = await self._patch(agent, instruction)
                    return events.StatusWritten(uid=uid, pod=answer, at=agent.moment())
                case DeletePod(_, pod):
                    await self._delete(agent, uid, pod)
                    return events.PodDeleted(uid=uid, at=agent.moment())
                case _:
                    return await self._call(agent, instruction)
        except Exception as error:  # noqa: BLE001  # the core decides what follows
            _log_failure(agent, uid, error)
            return events.InstructionFailed(
                uid=uid, sandbox=agent.runtime.sandboxes.get(uid), at=agent.moment()
            )

    # The runtime

    async def _call(self, agent: Agent, call: RuntimeCall) -> events.Result:
        try:
            return await self._make_call(agent, call)
        except FailpointError as error:
            if not isinstance(call, Actuate):
                raise
            return events.CallRefused(
                uid=call.uid,
                error=str(error),
                sandbox=agent.runtime.sandboxes.get(call.uid),
                at=agent.moment(),
            )

    async def _make_call(self, agent: Agent, call: RuntimeCall) -> events.CallDone:
        """Make a call: its change is on disk when it returns, as of a real runtime."""
        before, after = _BEFORE.get(type(call)), _AFTER.get(type(call))
        if isinstance(call, Actuate):
            before = failpoints.ACTUATE_BEFORE if call.first else failpoints.ACTUATE_BETWEEN
            after = failpoints.ACTUATE_AFTER if call.last else None
        if before is not None:
            await before.hit(pod=_name(agent, call.uid), node=agent.name)
        if isinstance(call, instructions.CreateSandbox) and call.uid not in agent.node.pods:
            raise KeyError(call.uid)  # removed meanwhile: its sandbox would stay, as no call would remove it
        old = agent.runtime.sandboxes.get(call.uid)
        new = agent.runtime.perform(call, agent.env.clock.now())
        if new is not old:
            agent.checkpointer.mark_changed()
            if old is not None:  # else containers are still to be started, which is saved then
                metrics.count_terminations(old, new)
                await agent.checkpointer.save()
        if after is not None:
            await after.hit(pod=_name(agent, call.uid), node=agent.name)
        return events.CallDone(uid=call.uid, sandbox=new, at=agent.moment())

    # The API server

    async def _patch(self, agent: Agent, patch: PatchStatus) -> core.Pod | None:
        """Patch the status; return the pod, None where it is gone: the watch brings the removal.

        Raises StatusError: a conflict may be another pod of this name, or too many writers.
        """
        await agent.checkpointer.save()
        await failpoints.STATUS_BEFORE.hit(pod=patch.pod, node=agent.name)
        async with self.requests:
            with ignoring(is_not_found):
                return await self.client.patch(
                    kinds.POD, patch.pod.name, patch.pod.namespace, dict(patch.patch), subresource="status"
                )
        return None

    async def _delete(self, agent: Agent, uid: str, pod: ObjectKey) -> None:
        """Remove a pod that has stopped: deletion without grace, of just this pod."""
        await failpoints.DELETE_BEFORE.hit(pod=pod, node=agent.name)
        async with self.requests:
            with ignoring(is_not_found):
                await self.client.delete(kinds.POD, pod.name, pod.namespace, grace_period_seconds=0, uid=uid)


def _name(agent: Agent, uid: str) -> ObjectKey | str:
    record = agent.node.pods.get(uid)
    return uid if record is None else key_of(record.pod)


def _log_failure(agent: Agent, uid: str, error: Exception) -> None:
    log = logs.get().debug if is_retryable(error) else logs.get().warning
    log("Pod worker failed, will retry", pod=_name(agent, uid), node=agent.name, error=repr(error))
