"""Record a profile's events through machinery's recorder, as plugins call it."""

from __future__ import annotations

from typing import Any

from nominee.machinery.events.recorder import BufferedRecorder
from nominee.scheduler.pod_status import note as cut


class ProfileRecorder:
    """Events of one profile; see `scheduler.framework.interface.PluginEventRecorder`."""

    def __init__(self, recorder: BufferedRecorder) -> None:
        self._recorder = recorder

    def event(
        self,
        regarding: Any,
        type_: str,
        reason: str,
        *,
        action: str,
        note: str,
        related: Any = None,
    ) -> None:
        self._recorder.event(regarding, type_, reason, action=action, note=cut(note), related=related)

    def failed_scheduling(self, pod: Any, message: str) -> None:
        """Record FailedScheduling."""
        self.event(pod, "Warning", "FailedScheduling", action="Scheduling", note=message)

    def scheduled(self, pod: Any, key: object, node_name: str) -> None:
        """Record Scheduled."""
        text = f"Successfully assigned {key} to {node_name}"
        self.event(pod, "Normal", "Scheduled", action="Binding", note=text)
