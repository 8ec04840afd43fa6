"""Keep pods that wait until Permit plugins allow them.

Source: kube-scheduler 1.36, framework runtime, waiting pods.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import anyio

from nominee.machinery.runtime.clock import Clock
from nominee.machinery.wire.values.scalars import format_duration
from nominee.scheduler.framework.interface import Code, Status
from nominee.scheduler.framework.types import PodInfo

NANOS_PER_SECOND: Final = 1_000_000_000


class WaitingPod:
    """One pod; every plugin that returned Wait must allow it, the first that rejects it ends the wait.

    A rejection by one of `preemptors` (that did not return Wait itself) is no verdict on the pod: it counts
    as an error, and the pod is tried again after a backoff instead of waiting for an event (1.36).
    """

    def __init__(
        self,
        pod: PodInfo,
        node_name: str,
        timeouts: Mapping[str, float],
        clock: Clock,
        preemptors: frozenset[str] = frozenset(),
    ) -> None:
        now = clock.monotonic()
        self.pod = pod
        self.node_name = node_name
        self._clock = clock
        self._preemptors = preemptors - timeouts.keys()
        self._timeouts = dict(timeouts)
        self._deadlines = {plugin: now + seconds for plugin, seconds in timeouts.items()}
        self._status: Status | None = None
        self._decided = anyio.Event()

    def pending_plugins(self) -> Iterable[str]:
        """Return the plugins that have not allowed the pod yet."""
        return tuple(self._deadlines)

    def allow(self, plugin: str) -> None:
        """Allow the pod for one plugin; the last one ends the wait."""
        self._deadlines.pop(plugin, None)
        if not self._deadlines:
            self._decided.set()

    def reject(self, plugin: str, message: str) -> bool:
        """Reject the pod for a plugin; return False when the wait is over already."""
        if self._decided.is_set():
            return False
        if plugin in self._preemptors:
            self._status = Status(Code.Error, (f"waiting on permit for pod: {message}",), plugin)
        else:
            self._status = Status(Code.Unschedulable, (message,), plugin)
        self._decided.set()
        return True

    async def wait(self) -> Status | None:
        """Wait; return None when allowed, else the rejection. A plugin that times out rejects."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch_deadlines)
            await self._decided.wait()
            group.cancel_scope.cancel()
        return self._status

    async def _watch_deadlines(self) -> None:
        """Reject at the first deadline of a plugin that has not allowed the pod by then."""
        while self._deadlines:
            plugin = min(self._deadlines, key=lambda name: self._deadlines[name])
            await self._clock.sleep(self._deadlines[plugin] - self._clock.monotonic())
            if plugin in self._deadlines:
                waited = format_duration(round(self._timeouts[plugin] * NANOS_PER_SECOND))
                self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")
                return


class PreBinding:
    """A pod in PreBind, which a preemptor may stop there: it goes back to the queue, nothing is deleted.

    Source: kube-scheduler 1.36, pods in PreBind. Looks like a `WaitingPod` to plugins.
    """

    def __init__(self, pod: PodInfo, node_name: str) -> None:
        self.scope = anyio.CancelScope()
        self.message = ""
        self.pod = pod
        self.node_name = node_name

    def pending_plugins(self) -> Iterable[str]:
        """Return nothing: Permit is over."""
        return ()

    def allow(self, plugin: str) -> None:
        """Do nothing: Permit is over."""

    def reject(self, plugin: str, message: str) -> bool:
        """Stop the binding; `message` is the plugin's action (preempted)."""
        if not self.message:
            self.message = f"{message} by {plugin}"
            self.scope.cancel()
        return True


class WaitingPods:
    """The pods that wait on Permit, and those in PreBind that a preemptor may stop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[str, WaitingPod] = {}
        self._pre_binding: dict[str, PreBinding] = {}

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(tuple(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)

    def add(
        self,
        pod: PodInfo,
        node_name: str,
        timeouts: Mapping[str, float],
        preemptors: frozenset[str] = frozenset(),
    ) -> WaitingPod:
        """Add a pod that begins to wait; `timeouts` are seconds by plugin."""
        waiting = self._pods[pod.uid] = WaitingPod(pod, node_name, timeouts, self._clock, preemptors)
        return waiting

    def stoppable(self, uid: str) -> WaitingPod | PreBinding | None:
        """Return a pod that can be sent back to the queue without deleting it, or None."""
        return self._pods.get(uid) or self._pre_binding.get(uid)

    @contextlib.contextmanager
    def pre_binding(self, stop: PreBinding) -> Iterator[None]:
        """List a pod as stoppable in PreBind while the block runs."""
        self._pre_binding[stop.pod.uid] = stop
        try:
            yield
        finally:
            self._pre_binding.pop(stop.pod.uid, None)

    def remove(self, uid: str) -> None:
        """Remove a pod that does not wait any more."""
        self._pods.pop(uid, None)

    def reject(self, uid: str, message: str = "removed") -> bool:
        """Reject a pod that waits; return False when it does not wait."""
        waiting = self._pods.get(uid)
        return waiting is not None and waiting.reject("", message)
