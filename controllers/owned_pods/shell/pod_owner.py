"""The base of controllers that create and delete the pods of their objects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, Final, Generic, TypeVar

import anyio
from google.protobuf.message import Message

from nominee.controllers.owned_pods.expectations import Expectations
from nominee.controllers.planned_events import PlannedEvent
from nominee.controllers.shell.controller import Context, Controller, controller_key, namespace_ends
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import (
    ObjectKey,
    controller_of,
    is_terminating,
    key_of,
    resource_version_number,
    resource_version_of,
)
from nominee.machinery.api.pb import core, meta
from nominee.machinery.runtime.failpoints import Failpoint

BATCH_MAX: Final = 500
"""Calls at a time, however many items there are."""
T = TypeVar("T")
O = TypeVar("O", bound=Message)  # noqa: E741


class PodOwner(Controller, Generic[O]):
    """A controller whose objects own pods: it reconciles an object for each event of its pods.

    What it creates and deletes is expected (`expectations`) until the watch of pods shows it; an object with
    unfulfilled expectations must not count its pods.
    Source: kube-controller-manager 1.36, controller_utils (RealPodControl, ControllerExpectations).
    """

    create_before: ClassVar[Failpoint]
    create_after: ClassVar[Failpoint]

    def __init__(self, context: Context, kind: Kind[O]) -> None:
        super().__init__(context)
        self.kind = kind
        self.owners = self.watch(kind)
        self.pods = context.informers.of(kinds.POD)
        self.pods.add_handler(
            on_add=self._pod_added, on_update=self._pod_updated, on_delete=lambda pod, _: self._pod_gone(pod)
        )
        self.pods.add_batch_handler(self._pods_shown)
        self.expectations = Expectations()
        self._gaps = 0

    def selector_of(self, owner: O) -> meta.LabelSelector:
        """Return the selector of an owner's pods."""
        selector: meta.LabelSelector = owner.spec.selector  # type: ignore[attr-defined]  # of each kind
        return selector

    def outstanding(self) -> list[str]:
        return [str(key) for key in self.expectations.outstanding()]

    def satisfied(self, key: ObjectKey) -> bool:
        """Report whether the watch has shown all creations and deletions; ask before pods are read."""
        self.expectations.note_version(key, resource_version_number(self.pods.resource_version))
        return self.expectations.satisfied(key, self.clock.monotonic())

    # --- events of pods ---

    def pod_changed(self, key: ObjectKey) -> None:
        """Queue an owner for an event of one of its pods."""
        self.queue.add(key)

    def _pod_added(self, pod: core.Pod) -> None:
        key = controller_key(pod, self.kind)
        if key is not None:
            self.expectations.note_creation(key, pod.metadata.uid)
            self.pod_changed(key)
        else:
            self.enqueue_owner(pod, self.owners, self.selector_of)

    def _pod_updated(self, old: core.Pod, new: core.Pod) -> None:
        if new.metadata.HasField("deletionTimestamp"):
            self._note_deletion(new)
        before, after = controller_key(old, self.kind), controller_key(new, self.kind)
        if before is not None and before != after:
            self.pod_changed(before)
        if after is None:
            if controller_of(new) is None and (
                controller_of(old) is not None or old.metadata.labels != new.metadata.labels
            ):
                self._pod_added(new)
            return
        self.pod_changed(after)

    def _pod_gone(self, pod: core.Pod) -> None:
        self._note_deletion(pod)
        key = controller_key(pod, self.kind)
        if key is not None:
            self.expectations.note_creation(key, pod.metadata.uid)
            self.pod_changed(key)

    def _note_deletion(self, pod: core.Pod) -> None:
        key = controller_key(pod, self.kind)
        if key is not None:
            self.expectations.note_deletion(key, pod.metadata.uid)

    def _pods_shown(self) -> None:
        """Queue the owners that wait for a pod after a gap, which has no event of one that came and went."""
        if self.pods.gaps == self._gaps:
            return
        self._gaps = self.pods.gaps
        for key in self.expectations.outstanding():
            self.pod_changed(key)

    # --- writes of pods ---

    async def in_growing_batches(self, items: Sequence[T], call: Callable[[T], Awaitable[None]]) -> None:
        """Call for 1, 2, 4, ... 500 items at a time, so that an exhausted quota fails once, not 500 times.

        Raises:
            StatusError: the first failure; the batches after it are not begun.
        """
        done, size = 0, 1
        while done < len(items):
            batch = items[done : done + size]
            failures: list[StatusError] = []

            async def guarded(item: T, failures: list[StatusError] = failures) -> None:
                try:
                    await call(item)
                except StatusError as error:
                    failures.append(error)

            async with anyio.create_task_group() as tasks:
                for item in batch:
                    tasks.start_soon(guarded, item)
            if failures:
                raise failures[0]
            done += len(batch)
            size = min(2 * size, BATCH_MAX)

    async def create_pod(self, owner: O, pod: core.Pod) -> None:
        """Create a pod and record it; it is expected until the watch shows it.

        Raises:
            StatusError: the API server refuses it, for another reason than a namespace that terminates.
        """
        key = key_of(owner)
        await self.create_before.hit(owner=str(key))
        try:
            created = await self.client.create(pod)
        except StatusError as error:
            if namespace_ends(error):
                return
            self.record_pod(owner, "Create", pod, error)
            raise
        version, uid = resource_version_of(created), created.metadata.uid
        shown = self.pods.get(created.metadata.name, created.metadata.namespace)
        # A batch of the watch that is being applied has shown pods of after `pods.resource_version`.
        if shown is None or shown.metadata.uid != uid:
            if version > resource_version_number(self.pods.resource_version):
                self.expectations.expect(key, self.clock.monotonic(), created=uid, version=version)
            else:
                self.pod_changed(key)  # It is gone already, and a list between has no event of it.
        await self.create_after.hit(owner=str(key))
        self.record_pod(owner, "Create", created)

    async def delete_pod(self, owner: O, pod: core.Pod) -> None:
        """Delete a pod and record it; it is expected to terminate. One that is gone is no error."""
        key = key_of(owner)
        shown = self.pods.get(pod.metadata.name, pod.metadata.namespace)
        # The watch may have shown the end of a pod that another client deletes since the pods were read.
        if shown is not None and shown.metadata.uid == pod.metadata.uid and not is_terminating(shown):
            self.expectations.expect(key, self.clock.monotonic(), deleted=pod.metadata.uid)
        try:
            await self.client.delete(
                kinds.POD, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid
            )
        except StatusError as error:
            self.expectations.note_deletion(key, pod.metadata.uid)
            if is_not_found(error):
                return
            self.record_pod(owner, "Delete", pod, error)
            raise
        self.record_pod(owner, "Delete", pod)

    def record_pod(self, owner: O, verb: str, pod: core.Pod, error: StatusError | None = None) -> None:
        """Record that a pod was created or deleted ("Create", "Delete"), or why it could not be."""
        if error is not None:
            note = f"Error {verb.lower().removesuffix('e')}ing: {error}"
            self.record(owner, PlannedEvent(f"Failed{verb}", note, "Warning"))
            return
        note = f"{verb}d pod: {pod.metadata.name}"
        # Events that differ in `related` are not aggregated.
        self.recorder.event(owner, "Normal", f"Successful{verb}", action="", note=note, related=pod)
