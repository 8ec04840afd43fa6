"""Jobs and their pods for tests, and a world in which a Job can be played."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nominee.controllers.jobs import indexes
from nominee.controllers.jobs.backoff import Failures
from nominee.controllers.jobs.conditions import terminal_condition
from nominee.controllers.jobs.pods import TRACKING
from nominee.controllers.jobs.sync import JobSync
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import batch, core
from nominee.machinery.runtime.clock import to_time
from nominee.machinery.wire import codec
from tests.controllers.builders import EPOCH, stamp

UID = "job-uid"


def job(name: str = "work", *, status: Mapping[str, Any] | None = None, **spec: Any) -> batch.Job:
    """Return a Job as the API server would have it, with its defaults."""
    per_index = "backoffLimitPerIndex" in spec
    body: dict[str, Any] = {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 2**31 - 1 if per_index else 6,
        "completionMode": "NonIndexed",
        "podReplacementPolicy": "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed",
        "suspend": False,
        "selector": {"matchLabels": {"job": name}},
        "template": {
            "metadata": {"labels": {"job": name}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "app"}]},
        },
        **spec,
    }
    metadata = {"name": name, "namespace": "default", "uid": UID, "creationTimestamp": stamp(0)}
    given = {key: value for key, value in body.items() if value is not None}
    return codec.from_json(batch.Job, {"metadata": metadata, "spec": given, "status": dict(status or {})})


def sync_of(of: batch.Job, *pods: core.Pod, now: int = 0, **more: Any) -> JobSync:
    """Return a reconciliation, so many seconds after EPOCH, of which nothing is done yet."""
    options = {"failures": Failures(), "satisfied": True, **more}
    return JobSync(of, list(pods), now=float(EPOCH + now), **options)


def tracked(pod: core.Pod, index: int | None = None) -> core.Pod:
    """Return the pod of a Job that has not counted it; `index` is of an Indexed Job."""
    pod.metadata.finalizers.append(TRACKING)
    if index is not None:
        pod.metadata.annotations[indexes.INDEX] = str(index)
    return pod


class Crashed(Exception):
    """The controller was killed between two writes."""


class World:
    """An API server and kubelets, with the controller's cache of them, which may lag.

    A restart of the controller empties its memory and fills its cache. A cache never lacks the controller's
    own writes, as the shell takes care of it; the writes of others may be missing.
    """

    def __init__(self, of: batch.Job) -> None:
        self.job = of
        self.pods: dict[str, core.Pod] = {}
        self.ended: dict[str, core.Pod] = {}
        """Every pod that ended or whose deletion began, by uid, as it was last."""
        self.dropped: set[str] = set()
        """The pods that the Job deletes without counting them."""
        self.now = float(EPOCH)
        self.events: list[str] = []
        self.failures = Failures()
        self.version = 0
        self._cache: tuple[batch.Job, list[core.Pod]] = (copy_of(of), [])
        self._crash_after: int | None = None

    # --- others ---

    def running(self) -> list[core.Pod]:
        """Return the pods that have not ended."""
        return [pod for pod in self.pods.values() if pod.status.phase in ("", "Pending", "Running")]

    def end(self, pod: core.Pod, *, code: int = 0, conditions: tuple[str, ...] = ()) -> None:
        """Let a pod end with an exit code."""
        new = copy_of(pod)
        new.status.phase = "Failed" if code else "Succeeded"
        for type_ in conditions:
            new.status.conditions.add(type=type_, status="True")
        state = new.status.containerStatuses.add(name="c").state.terminated
        state.exitCode, state.finishedAt.seconds = code, int(self.now)
        self._put(new)

    def delete(self, pod: core.Pod) -> None:
        """Begin the deletion of a pod; it goes when it has ended and has no finalizer."""
        new = copy_of(pod)
        new.metadata.deletionTimestamp.CopyFrom(to_time(self.now))
        new.metadata.deletionGracePeriodSeconds = 0
        self._put(new)

    def kubelet(self) -> None:
        """End the containers of deleted pods."""
        for pod in self.running():
            if pod.metadata.HasField("deletionTimestamp"):
                self.end(pod, code=137)

    def change(self, **spec: Any) -> None:
        """Change fields of the Job's spec."""
        new = copy_of(self.job)
        for name, value in spec.items():
            setattr(new.spec, name, value)
        self._put_job(new)

    def _put(self, pod: core.Pod) -> None:
        uid = pod.metadata.uid
        if pod.status.phase in ("Succeeded", "Failed") or pod.metadata.HasField("deletionTimestamp"):
            self.ended[uid] = pod
        self.pods[uid] = pod
        if (
            pod.metadata.HasField("deletionTimestamp")
            and not pod.metadata.finalizers
            and (pod.status.phase in ("Succeeded", "Failed") or not pod.spec.nodeName)
        ):
            del self.pods[uid]
        self.version += 1

    def _put_job(self, new: batch.Job) -> None:
        self.version += 1
        new.metadata.resourceVersion = str(self.version)
        self.job = new

    # --- the controller ---

    def watch(self) -> None:
        """Fill the cache."""
        self._cache = copy_of(self.job), list(self.pods.values())

    def restart(self) -> None:
        self.failures = Failures()
        self.watch()

    def sync(self, *, crash_after: int | None = None, fresh: bool = True) -> JobSync | None:
        """Reconcile once; None when the controller crashed or the Job was changed meanwhile."""
        if fresh:
            self.watch()
        self._crash_after = crash_after
        before, pods = self._cache
        if terminal_condition(before):
            return None
        try:
            return self._perform(before, pods)
        except Crashed:
            self.restart()
        finally:
            self._crash_after = None
        return None

    def _perform(self, before: batch.Job, pods: list[core.Pod]) -> JobSync | None:
        sync = JobSync(before, pods, self.failures, now=self.now, satisfied=True)
        work = sync.work()
        for made in work.create:
            self._create(made)
        for pod in work.delete:
            if not work.final:
                self._release(pod)
                self.dropped.add(pod.metadata.uid)
            self._step()
            live = self.pods.get(pod.metadata.uid)
            if live is not None:
                self.delete(live)
        sync.note_work(len(work.create), work.delete)
        release = sync.count()
        written = self._write(before, sync)
        if written is None:
            return None
        if written is not before:
            self.failures = sync.failures
        for pod in release:
            self._release(pod)
        sync.note_release(written, {pod.metadata.uid for pod in release})
        sync.finish()
        if self._write(written, sync) is None:
            return None
        self.events += [event.reason for event in sync.events]
        self.watch()  # the shell waits until the watches show its writes
        return sync

    def _create(self, made: core.Pod) -> None:
        self._step()
        pod = copy_of(made)
        pod.metadata.uid = pod.metadata.name = f"{pod.metadata.generateName}{self.version}"
        pod.metadata.creationTimestamp.seconds = int(self.now)
        pod.spec.nodeName, pod.status.phase = "n1", "Running"
        self._put(pod)

    def _release(self, pod: core.Pod) -> None:
        self._step()
        live = self.pods.get(pod.metadata.uid)
        if live is not None and TRACKING in live.metadata.finalizers:
            new = copy_of(live)
            new.metadata.finalizers.remove(TRACKING)
            self._put(new)

    def _write(self, before: batch.Job, sync: JobSync) -> batch.Job | None:
        if sync.job.status == before.status:
            return before
        self._step()
        if self.job.metadata.resourceVersion != before.metadata.resourceVersion:
            self.watch()  # a conflict: the next reconciliation has the newer Job
            return None
        old, new = self.job.status, copy_of(sync.job)
        assert new.status.failed >= old.failed
        elastic = self.job.spec.completionMode == "Indexed"
        assert new.status.succeeded >= old.succeeded or elastic
        self._put_job(new)
        return copy_of(new)

    def _step(self) -> None:
        if self._crash_after is not None:
            if self._crash_after == 0:
                raise Crashed
            self._crash_after -= 1

    def settle(self, *, codes: int = 0, steps_max: int = 60) -> None:
        """Reconcile, and let all pods end with this code, until the Job is finished."""
        for _ in range(steps_max):
            self.sync()
            if terminal_condition(self.job):
                return
            self.kubelet()
            self.now += 700.0
            self.sync()
            for pod in self.running():
                self.end(pod, code=codes)
        raise AssertionError(f"the Job is not finished after {steps_max} steps: {self.job.status}")

    def conditions(self) -> dict[str, str]:
        """Return the reasons of the conditions that are True, in their order."""
        return {row.type: row.reason for row in self.job.status.conditions if row.status == "True"}
