"""Performs the steps of the volume controllers."""

from __future__ import annotations

from nominee.controllers.volumes.steps import RecordEvent, Step, Update
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.machinery.events.recorder import BufferedRecorder
from nominee.machinery.runtime import failpoints

BEFORE = failpoints.declare(
    "controllers.bind_volume.before",
    "the binder has decided on a write (claim, volume or status); it is not made",
)
AFTER = failpoints.declare(
    "controllers.bind_volume.after", "the binder's write is made; no event is recorded"
)


async def perform(
    step: Step, client: Client, recorder: BufferedRecorder
) -> core.PersistentVolumeClaim | core.PersistentVolume | None:
    """Perform a step; return the updated claim or volume, if any. Raises: StatusError."""
    if isinstance(step, RecordEvent):
        _record(step, recorder)
        return None
    await BEFORE.hit(step=str(step))
    written = None
    if isinstance(step, Update):
        written = await client.update(step.obj, subresource=step.subresource)
    else:
        await client.delete(kinds.PERSISTENT_VOLUME, step.volume.metadata.name, uid=step.volume.metadata.uid)
    await AFTER.hit(step=str(step))
    if isinstance(step, Update) and step.event is not None:
        _record(step.event, recorder)
    return written


def _record(event: RecordEvent, recorder: BufferedRecorder) -> None:
    recorder.event(event.regarding, event.type, event.reason, action="", note=event.note)
