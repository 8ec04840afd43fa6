"""One pod's steps: start, become ready, resize, stop. Each pass looks at what is and does what comes next.

Level-triggered: a pass may come at any time and as often as it likes. What the runtime takes time for is
remembered as a due time, and the pod is queued again for then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kubelet import events
from kubelet.node.state import TERMINAL_PHASES, PodRecord
from kubelet.options import Delays, exit_code, pre_stop_sleep, run_duration
from kubelet.pods import container_events as lifecycle
from kubelet.pods import deadline
from kubelet.resize import actuation
from kubelet.resources.pod_resources import PodResources
from kubelet.runtime import crash_loop
from kubelet.runtime import sandbox as runtime
from kubelet.runtime.sandbox import PodSandbox
from kubelet.shell.agent import Agent, Due
from kubelet.shell.points import (
    ACTUATE_AFTER,
    ACTUATE_BEFORE,
    START_AFTER,
    START_BEFORE,
    TERMINATE_AFTER,
    TERMINATE_BEFORE,
)
from kubelet.shell.status_writer import StatusWriter
from kubelet.shell.timers import EARLY_SECONDS_MAX
from kubelet.status.pod_status import View
from machinery.api.errors import is_retryable
from machinery.api.objects import is_terminating, key_of
from machinery.api.pb import core
from machinery.runtime import logs
from machinery.runtime.failpoints import FailpointError

ACTUATION_RETRY_SECONDS = 10.0
FAILURE_RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class PodWorker:
    """The steps of every pod of the process."""

    delays: Delays
    writer: StatusWriter
    agent_of: Callable[[str], Agent | None]

    async def work(self, key: tuple[str, str]) -> None:
        """One pass for the pod (node, uid). Does not raise: what fails is tried again later."""
        name, uid = key
        agent = self.agent_of(name)
        if agent is None or agent.stopped:
            return
        try:
            await self._pass(agent, uid)
        except Exception as error:  # noqa: BLE001  # one pod's trouble must not stop the others
            record = agent.state.pods.get(uid)
            pod = key_of(record.pod) if record is not None else uid
            tell = logs.get().debug if is_retryable(error) else logs.get().warning
            tell("Pod worker failed, will retry", pod=pod, node=name, error=repr(error))
            agent.around.timers.after(FAILURE_RETRY_SECONDS, lambda: agent.around.enqueue(name, uid))

    async def _pass(self, agent: Agent, uid: str) -> None:
        await agent.checkpointer.saved()
        record = agent.state.pods.get(uid)
        if record is None:
            return
        agent.begin_sync(record)
        if is_terminating(record.pod) or uid in agent.outcomes:
            await self._terminate(agent, record)
        elif record.terminated or record.pod.status.phase in TERMINAL_PHASES:
            await self._finish(agent, record)
        elif uid in agent.admitted:
            if self._exceeds_deadline(agent, record):
                agent.exceed_deadline(record)
                await self._terminate(agent, record)
            else:
                await self._run(agent, record)

    # Running

    async def _run(self, agent: Agent, record: PodRecord) -> None:
        delays = self.delays.of(record.pod)
        sandbox = await self._start(agent, record, delays)
        if sandbox is None:
            return
        sandbox = await self._rerun(agent, record, sandbox)
        sandbox = await self._make_ready(agent, sandbox, delays)
        if await self._ended(agent, record, sandbox):
            return
        sandbox = await self._resize(agent, record, sandbox, delays)
        sandbox = await self._debug(agent, record, sandbox)
        await self.writer.write(agent, self._view(agent, record, sandbox))

    async def _start(self, agent: Agent, record: PodRecord, delays: Delays) -> PodSandbox | None:
        """The running sandbox, or None while the containers take their time."""
        uid, due = record.uid, self._due(agent, record.uid)
        sandbox = agent.sandboxes.get(uid)
        if sandbox is not None and sandbox.begun:
            return sandbox
        if sandbox is None:
            await START_BEFORE.hit(pod=key_of(record.pod), node=agent.name)
            sandbox = runtime.prepare(record.pod, now=agent.now())
            agent.set_sandbox(sandbox)
        if self._waits(agent, uid, due, "start", delays.start):
            await self.writer.write(agent, self._view(agent, record, sandbox))
            return None
        allocated = agent.state.allocated(record)
        sandbox = runtime.start(sandbox, allocated, ip=agent.ip_for(record.pod), now=agent.now())
        agent.set_sandbox(sandbox)
        await agent.checkpointer.saved()
        await START_AFTER.hit(pod=key_of(record.pod), node=agent.name)
        names = [container.name for container in sandbox.containers]
        agent.tell(lifecycle.started(record.pod, names, agent.around.version))
        return sandbox

    async def _make_ready(self, agent: Agent, sandbox: PodSandbox, delays: Delays) -> PodSandbox:
        if sandbox.ready or not sandbox.running:
            return sandbox
        if self._waits(agent, sandbox.uid, self._due(agent, sandbox.uid), "ready", delays.ready):
            return sandbox
        sandbox = runtime.become_ready(agent.sandboxes.get(sandbox.uid, sandbox))
        agent.set_sandbox(sandbox)
        await agent.checkpointer.saved()
        return sandbox

    async def _ended(self, agent: Agent, record: PodRecord, sandbox: PodSandbox) -> bool:
        """Ends containers whose pod's annotation says so: the pod, or for its restartPolicy only this run."""
        duration, code, due = run_duration(record.pod), exit_code(record.pod), self._due(agent, record.uid)
        if duration is None or not sandbox.running:
            return False
        if self._waits(agent, record.uid, due, "end", duration):
            return False
        policy = record.pod.spec.restartPolicy
        if policy == "Always" or (policy == "OnFailure" and code):
            due.end = None
            agent.set_sandbox(runtime.crash(sandbox, now=agent.now(), exit_code=code))
            await agent.checkpointer.saved()
            agent.around.enqueue(agent.name, record.uid)
            return True
        stopped = runtime.stop(sandbox, now=agent.now(), exit_code=code)
        agent.set_sandbox(stopped)
        await agent.checkpointer.saved()
        agent.send(events.PodTerminated(uid=record.uid, now=agent.now()))
        await self._finish(agent, record)
        return True

    async def _rerun(self, agent: Agent, record: PodRecord, sandbox: PodSandbox) -> PodSandbox:
        """Runs what has crashed again, once its back-off is over."""
        crashed, due = sandbox.crashed, self._due(agent, record.uid)
        if not crashed:
            return sandbox
        names = [container.name for container in crashed]
        until = max(one.last_finished + crash_loop.seconds(one.crashes) for one in crashed)
        begins = due.restart is None
        if self._waits(agent, record.uid, due, "restart", max(until - agent.now(), 0.0)):
            if begins:
                agent.tell(lifecycle.backing_off(record.pod, names))
            return sandbox
        due.restart = due.ready = None
        sandbox = runtime.rerun(sandbox, agent.state.allocated(record), now=agent.now())
        agent.set_sandbox(sandbox)
        await agent.checkpointer.saved()
        agent.tell(lifecycle.started(record.pod, names, agent.around.version))
        return sandbox

    async def _debug(self, agent: Agent, record: PodRecord, sandbox: PodSandbox) -> PodSandbox:
        """Starts the ephemeral containers that are new in a running pod (kubectl debug)."""
        if not record.pod.spec.ephemeralContainers:
            return sandbox
        known = {container.name for container in sandbox.ephemeral}
        wanted = [one.ephemeralContainerCommon.name for one in record.pod.spec.ephemeralContainers]
        added = [name for name in wanted if name not in known]
        if not added or not sandbox.running:
            return sandbox
        sandbox = runtime.debug(sandbox, added, now=agent.now())
        agent.set_sandbox(sandbox)
        await agent.checkpointer.saved()
        agent.tell(lifecycle.started(record.pod, added, agent.around.version))
        return sandbox

    # Resize

    async def _resize(
        self, agent: Agent, record: PodRecord, sandbox: PodSandbox, delays: Delays
    ) -> PodSandbox:
        """Puts into force what is allocated, once the runtime has had its time."""
        uid, due = record.uid, self._due(agent, record.uid)
        settled = not actuation.in_progress(agent.resizes(record, sandbox))
        settled = settled and not agent.pod_level_differs(record, sandbox)
        agent.send(events.PodSynced(uid=uid, settled=settled, now=agent.now()))
        if settled:
            due.actuate = None
            return sandbox
        allocated = agent.state.allocated(record)
        if due.actuates is not allocated:
            due.actuate, due.actuates = None, allocated
        if self._waits(agent, uid, due, "actuate", delays.actuation):
            return sandbox
        due.actuate = None
        try:
            sandbox = await self._actuate(agent, record, sandbox)
        except (FailpointError, _RefusedError) as error:
            agent.send(events.ActuationFailed(uid=uid, error=str(error), now=agent.now()))
            due.actuate = agent.around.clock.monotonic() + ACTUATION_RETRY_SECONDS
            self._again(agent, uid, ACTUATION_RETRY_SECONDS)
            return sandbox
        settled = not actuation.in_progress(agent.resizes(record, sandbox))
        agent.send(events.PodSynced(uid=uid, settled=settled, now=agent.now()))
        return sandbox

    async def _actuate(self, agent: Agent, record: PodRecord, sandbox: PodSandbox) -> PodSandbox:
        await ACTUATE_BEFORE.hit(pod=key_of(record.pod), node=agent.name)
        containers = agent.resizes(record, sandbox)
        plan = actuation.plan(containers)
        if plan.error:
            raise _RefusedError(plan.error)
        allocated: PodResources = agent.state.allocated(record)
        changed = {one.name: actuation.after(one, plan.calls) for one in containers}
        sandbox = runtime.with_resources(sandbox, changed, pod_resources=allocated.pod)
        if plan.restart:
            sandbox = runtime.restart(sandbox, plan.restart, allocated, now=agent.now())
            agent.tell(lifecycle.restarting(record.pod, plan.restart))
            agent.tell(lifecycle.started(record.pod, plan.restart, agent.around.version))
        agent.set_sandbox(sandbox)
        await agent.checkpointer.saved()
        await ACTUATE_AFTER.hit(pod=key_of(record.pod), node=agent.name)
        return sandbox

    # Stopping

    def _exceeds_deadline(self, agent: Agent, record: PodRecord) -> bool:
        """Whether the pod's activeDeadlineSeconds are over; its first call begins the wait for them."""
        sandbox = agent.sandboxes.get(record.uid)
        taken = None if sandbox is None else sandbox.started
        left = deadline.seconds_left(record.pod, taken=taken, now=agent.now())
        if left is None:
            return False
        due, seconds = self._due(agent, record.uid), record.pod.spec.activeDeadlineSeconds
        if due.deadline_seconds != seconds:
            due.deadline, due.deadline_seconds = None, seconds
        return not self._waits(agent, record.uid, due, "deadline", left)

    async def _terminate(self, agent: Agent, record: PodRecord) -> None:
        """Stops a pod that is deleted, rejected or preempted: containers, last status, object."""
        uid, due = record.uid, self._due(agent, record.uid)
        sandbox = agent.sandboxes.get(uid)
        if sandbox is not None and sandbox.running:
            if due.stop is None:
                await TERMINATE_BEFORE.hit(pod=key_of(record.pod), node=agent.name)
                every = (*sandbox.containers, *sandbox.ephemeral)
                running = [c.name for c in every if c.state == "running"]
                agent.tell(lifecycle.stopping(record.pod, running))
            if self._stops_later(agent, record, due):
                await self.writer.write(agent, self._view(agent, record, sandbox))
                return
            agent.set_sandbox(runtime.stop(sandbox, now=agent.now()))
            await agent.checkpointer.saved()
            await TERMINATE_AFTER.hit(pod=key_of(record.pod), node=agent.name)
        elif sandbox is not None and sandbox.crashed:
            agent.set_sandbox(runtime.stop(sandbox, now=agent.now()))
        if not record.terminated:
            agent.send(events.PodTerminated(uid=uid, now=agent.now()))
        await self._finish(agent, record)

    async def _finish(self, agent: Agent, record: PodRecord) -> None:
        """The last status, then, for a deleted pod, the deletion that removes it."""
        if record.pod.status.phase not in TERMINAL_PHASES:
            view = self._view(agent, record, agent.sandboxes.get(record.uid), terminal=True)
            await self.writer.write(agent, view)
        if is_terminating(record.pod) and not _waits_for_finalizers(record.pod):
            await self.writer.delete(agent, record.pod)

    def _stops_later(self, agent: Agent, record: PodRecord, due: Due) -> bool:
        """Whether the containers still have time: their own delay, but never beyond the grace period."""
        pod, monotonic = record.pod, agent.around.clock.monotonic()
        wanted = self.delays.of(pod).stop + pre_stop_sleep(pod)
        if due.stop is None:
            due.stop = monotonic + wanted
        # The whole period from when this kubelet learned of it, as upstream's: deletionTimestamp has whole
        # seconds only, so that counting down to it would take up to a second of the grace away.
        seconds = (
            pod.metadata.deletionGracePeriodSeconds
            if is_terminating(pod)
            else pod.spec.terminationGracePeriodSeconds
        )
        due.stop = min(due.stop, monotonic + max(float(seconds), 0.0))
        if due.stop <= monotonic + EARLY_SECONDS_MAX:
            return False
        self._again(agent, record.uid, due.stop - monotonic)
        return True

    # Small things

    def _due(self, agent: Agent, uid: str) -> Due:
        return agent.due.setdefault(uid, Due())

    def _waits(self, agent: Agent, uid: str, due: Due, step: str, delay: float) -> bool:
        """Whether a step's time has not come; its first call begins the wait."""
        monotonic = agent.around.clock.monotonic()
        when: float | None = getattr(due, step)
        if when is None:
            when = monotonic + delay
            setattr(due, step, when)
            if delay > 0:
                self._again(agent, uid, delay)
        return when > monotonic + EARLY_SECONDS_MAX  # a timer may come so much too early

    def _again(self, agent: Agent, uid: str, seconds: float) -> None:
        agent.around.timers.after(seconds, lambda: agent.around.enqueue(agent.name, uid))

    def _view(
        self, agent: Agent, record: PodRecord, sandbox: PodSandbox | None, *, terminal: bool = False
    ) -> View:
        return View(
            pod=record.pod,
            host_ip=agent.identity.host_ip,
            now=agent.now(),
            sandbox=sandbox,
            allocated=agent.state.allocated(record),
            pending=record.pending,
            in_progress=record.in_progress,
            preemption_disabled=agent.state.resize_preemption_disabled,
            outcome=agent.outcomes.get(record.uid),
            terminal=terminal or record.terminated,
        )


def _waits_for_finalizers(pod: core.Pod) -> bool:
    """Whether the deletion without grace was made already: the rest is the finalizers' owners' to do."""
    return bool(pod.metadata.finalizers) and pod.metadata.deletionGracePeriodSeconds == 0


class _RefusedError(Exception):
    """The runtime would not do it."""
