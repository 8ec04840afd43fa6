"""The demo's output: headings, the steps of a story, changes in the cluster, and checks."""

from __future__ import annotations

import errno
import os

from rich.console import Console

from machinery.api.objects import condition_is, get_condition
from machinery.api.pb import core
from machinery.runtime.clock import Clock

_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"


class _Console(Console):
    """A console whose reader may end: an OSError like any other (rich's own console raises SystemExit)."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


class StoryError(Exception):
    """A check of a story did not hold."""


class Narrator:
    """Print lines with the time since the story began, in colours where the terminal has them."""

    def __init__(self, clock: Clock) -> None:
        self._console = _Console(highlight=False, soft_wrap=True)
        self._clock = clock
        self._began = clock.monotonic()
        self.checks = 0

    def _line(self, mark: str, text: str, style: str) -> None:
        seconds = self._clock.monotonic() - self._began
        self._console.print(f"[dim]{seconds:5.1f}s[/dim] [{style}]{mark}[/{style}] ", end="")
        self._console.print(text, markup=False)

    def heading(self, text: str) -> None:
        self._began = self._clock.monotonic()
        self._console.print()
        self._console.print(text, style="bold", markup=False)

    def act(self, text: str) -> None:
        """Print a step of the story."""
        self._line(">", text, "cyan")

    def saw(self, text: str) -> None:
        """Print a change in the cluster."""
        self._line("·", text, "dim")

    def held(self, text: str) -> None:
        """Print a check that held, and count it."""
        self.checks += 1
        self._line("✓", text, "green")

    def failed(self, text: str) -> None:
        self._line("✗", text, "bold red")

    def plain(self, text: str) -> None:
        self._console.print(text, markup=False)


class Watching:
    """Event handlers of the stage's informers: they print the changes of pods, nodes and claims."""

    def __init__(self, narrator: Narrator) -> None:
        self._say = narrator.saw

    def pod_changed(self, old: core.Pod | None, new: core.Pod) -> None:
        """Print what changed of a pod: binding, nomination, the PodScheduled condition, deletion, resize."""
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

    def pod_gone(self, pod: core.Pod) -> None:
        self._say(f"pod {pod.metadata.name} is gone")

    def node_changed(self, old: core.Node | None, new: core.Node) -> None:
        """Print that a node is ready, or that its deletion taint was added or removed."""
        if condition_is(new.status.conditions, "Ready") and not (
            old and condition_is(old.status.conditions, "Ready")
        ):
            self._say(f"node {new.metadata.name} is ready ({new.status.allocatable['cpu'].string} cpu)")
        doomed = any(taint.key == _TO_BE_DELETED for taint in new.spec.taints)
        was_doomed = old is not None and any(taint.key == _TO_BE_DELETED for taint in old.spec.taints)
        if doomed and not was_doomed:
            self._say(f"node {new.metadata.name} is marked for deletion by the autoscaler")
        elif was_doomed and not doomed:
            self._say(f"node {new.metadata.name} is no longer marked for deletion")

    def node_gone(self, node: core.Node) -> None:
        self._say(f"node {node.metadata.name} is deleted")

    def claim_changed(self, old: core.PersistentVolumeClaim | None, new: core.PersistentVolumeClaim) -> None:
        """Print that a claim's selected node or its phase changed."""
        name = f"claim {new.metadata.name}"
        was = old.metadata.annotations.get(_SELECTED_NODE, "") if old else ""
        now = new.metadata.annotations.get(_SELECTED_NODE, "")
        if was != now:
            text = f"has selected node {now}" if now else f"lost its selected node {was}"
            self._say(f"{name} {text}")
        if new.status.phase == "Bound" and not (old and old.status.phase == "Bound"):
            self._say(f"{name} is bound to volume {new.spec.volumeName}")
