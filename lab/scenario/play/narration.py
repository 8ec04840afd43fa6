"""The output of a running scenario: its steps, the changes in the cluster, and the checks."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Protocol, cast

from google.protobuf.message import Message
from rich.console import Console

from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import condition_is, get_condition
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import Clock

_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"


class Narrator(Protocol):
    """A reader of a scenario's progress; a method that a subclass does not have ignores it."""

    def heading(self, text: str) -> None:
        """Begin a scenario."""
        return None

    def act(self, text: str) -> None:
        """Report a step that changes something."""
        return None

    def waits(self, text: str) -> None:
        """Report a condition that the next step needs."""
        return None

    def saw(self, text: str) -> None:
        """Report a change in the cluster."""
        return None

    def held(self, text: str) -> None:
        """Report a check that held."""
        return None

    def failed(self, text: str) -> None:
        """Report a step that failed."""
        return None


class Silent(Narrator):
    """A narrator that prints nothing."""


class _Console(Console):
    """A console whose reader may end: an OSError like any other (rich's own console raises SystemExit)."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


class TextNarrator(Narrator):
    """Print lines with the time since the scenario began, in colours where the terminal has them."""

    def __init__(self, clock: Clock, *, to_stderr: bool = False) -> None:
        self._console = _Console(highlight=False, soft_wrap=True, stderr=to_stderr)
        self._clock = clock
        self._began = clock.monotonic()

    def _line(self, mark: str, text: str, style: str) -> None:
        seconds = self._clock.monotonic() - self._began
        self._console.print(f"[dim]{seconds:5.1f}s[/dim] [{style}]{mark}[/{style}] ", end="")
        self._console.print(text, markup=False)

    def heading(self, text: str) -> None:
        self._began = self._clock.monotonic()
        self._console.print()
        self._console.print(text, style="bold", markup=False)

    def act(self, text: str) -> None:
        self._line(">", text, "cyan")

    def waits(self, text: str) -> None:
        self._line("…", text, "dim")

    def saw(self, text: str) -> None:
        self._line("·", text, "dim")

    def held(self, text: str) -> None:
        self._line("✓", text, "green")

    def failed(self, text: str) -> None:
        self._line("✗", text, "bold red")

    def plain(self, text: str) -> None:
        """Print a line without a time."""
        self._console.print(text, markup=False)


class Changes:
    """A listener of a world's changes: it reports those of pods, nodes and claims that matter to a reader."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def __call__(self, kind: AnyKind, old: Message | None, new: Message | None) -> None:
        """Report one change."""
        if kind is kinds.POD:
            self._pod(cast("core.Pod | None", old), cast("core.Pod | None", new))
        elif kind is kinds.NODE:
            self._node(cast("core.Node | None", old), cast("core.Node | None", new))
        elif kind is kinds.PERSISTENT_VOLUME_CLAIM and new is not None:
            self._claim(
                cast("core.PersistentVolumeClaim | None", old), cast("core.PersistentVolumeClaim", new)
            )

    def _pod(self, old: core.Pod | None, new: core.Pod | None) -> None:
        if new is None:
            if old is not None:
                self._say(f"pod {old.metadata.name} is gone")
            return
        name = f"pod {new.metadata.name}"
        was, now = (old.status.nominatedNodeName if old else ""), new.status.nominatedNodeName
        if not (old and old.spec.nodeName) and new.spec.nodeName:
            cleared = ", nominatedNodeName cleared" if was and not now else ""
            self._say(f"{name} is bound to {new.spec.nodeName}{cleared}")
        elif was != now:
            self._say(f"{name}: nominatedNodeName {was or 'unset'} -> {now or 'unset'}")
        condition = get_condition(new.status.conditions, "PodScheduled")
        before = get_condition(old.status.conditions, "PodScheduled") if old else None
        previous = (before.reason, before.message) if before is not None else None
        if condition is not None and condition.status == "False":
            current = (condition.reason, condition.message)
            if current != previous:
                self._say(f"{name}: {condition.reason}: {condition.message}")
        if new.metadata.HasField("deletionTimestamp") and not (
            old and old.metadata.HasField("deletionTimestamp")
        ):
            self._say(f"{name} is terminating ({new.metadata.deletionGracePeriodSeconds} s grace)")
        self._resize(name, old, new)

    def _resize(self, name: str, old: core.Pod | None, new: core.Pod) -> None:
        for kind in ("PodResizePending", "PodResizeInProgress", "PodResizePreemptionDisabled"):
            before = get_condition(old.status.conditions, kind) if old else None
            now = get_condition(new.status.conditions, kind)
            if now is not None and (before is None or before.reason != now.reason):
                self._say(f"{name}: {kind} {now.reason} {now.message}".rstrip())
            elif now is None and before is not None:
                self._say(f"{name}: {kind} is removed")

    def _node(self, old: core.Node | None, new: core.Node | None) -> None:
        if new is None:
            if old is not None:
                self._say(f"node {old.metadata.name} is deleted")
            return
        was_ready = old is not None and condition_is(old.status.conditions, "Ready")
        if condition_is(new.status.conditions, "Ready") and not was_ready:
            self._say(f"node {new.metadata.name} is ready ({new.status.allocatable['cpu'].string} cpu)")
        doomed = any(taint.key == _TO_BE_DELETED for taint in new.spec.taints)
        was_doomed = old is not None and any(taint.key == _TO_BE_DELETED for taint in old.spec.taints)
        if doomed and not was_doomed:
            self._say(f"node {new.metadata.name} is marked for deletion by the autoscaler")
        elif was_doomed and not doomed:
            self._say(f"node {new.metadata.name} is no longer marked for deletion")

    def _claim(self, old: core.PersistentVolumeClaim | None, new: core.PersistentVolumeClaim) -> None:
        name = f"claim {new.metadata.name}"
        was = old.metadata.annotations.get(_SELECTED_NODE, "") if old else ""
        now = new.metadata.annotations.get(_SELECTED_NODE, "")
        if was != now:
            text = f"has selected node {now}" if now else f"lost its selected node {was}"
            self._say(f"{name} {text}")
        if new.status.phase == "Bound" and not (old and old.status.phase == "Bound"):
            self._say(f"{name} is bound to volume {new.spec.volumeName}")
