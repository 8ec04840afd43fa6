"""Whatever becomes of the calls, each pod has one at a time, and the nominator has what counts.

A server with revisions, a watch that is behind it by any number of events, and the scheduler's own queue,
event handlers and nominator. A call may reach the server before or after its answer is lost, and its watch
event may come before the answer, after it, or never (a restart).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nominee.machinery.api.objects import ObjectKey, key_of, resource_version_of
from nominee.machinery.api.pb import core
from nominee.scheduler.dispatch.api_calls import (
    Consequence,
    Outcome,
    PodStatusPatch,
    Released,
    Renominated,
)
from nominee.scheduler.dispatch.call_queue import CallQueue
from nominee.scheduler.dispatch.states import CallState, Trigger
from nominee.scheduler.event_handlers import EventHandlers
from nominee.scheduler.failure import requeue_failed
from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.interface import Handle
from nominee.scheduler.framework.nominations.nominating import NominatingInfo, NominatingMode
from nominee.scheduler.framework.nominations.nominator import Nominator
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.priority_sort import PrioritySort
from nominee.scheduler.queue.scheduling_queue import PrioritySchedulingQueue, QueueProfile
from tests.scheduler.builders import pod

NAMES = st.sampled_from(["a", "b"])
NODES = st.sampled_from(["", "n1", "n2"])
DECISIONS = st.sampled_from([None, "", "n1", "n2"])  # None: the nomination is left alone
DISTURBANCES = st.sampled_from(["change", "nominate", "delete", "bind", "restart"])
LOSSES = st.sampled_from([Trigger.FAILED, Trigger.UNREACHABLE])
DRAIN_MAX = 1000


@dataclass
class Sent:
    """A call under way. `answer`: the pod as the server returned it, once the call has reached it."""

    call: PodStatusPatch
    has_arrived: bool = False
    answer: core.Pod | None = None


@dataclass
class Decision:
    """A nomination that counts until the watch shows its write."""

    node: str
    number: int
    revision: int | None = None


class Server:
    """The pods with their revisions, and the events that the watch has not delivered."""

    def __init__(self) -> None:
        self.pods: dict[ObjectKey, core.Pod] = {}
        self.events: list[tuple[core.Pod | None, core.Pod | None]] = []  # old, new
        self.revision = 0
        self.created = 0

    def put(self, new: core.Pod) -> core.Pod:
        self.revision += 1
        new.metadata.resourceVersion = str(self.revision)
        key = key_of(new)
        self.events.append((self.pods.get(key), new))
        self.pods[key] = new
        return new

    def copy(self, key: ObjectKey) -> core.Pod:
        made = core.Pod()
        made.CopyFrom(self.pods[key])
        return made

    def patch(self, key: ObjectKey, patch: dict[str, Any] | None) -> core.Pod | None:
        """Apply what the call changes; None: there is no such pod."""
        if key not in self.pods:
            return None
        new = self.copy(key)
        status = (patch or {}).get("status", {})
        if "nominatedNodeName" in status:
            new.status.nominatedNodeName = status["nominatedNodeName"] or ""
        return self.put(new)


class CallMachine(RuleBasedStateMachine):
    """Decisions, outcomes and watch events in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.server = Server()
        self.create("a")
        self.create("b")
        self.start()

    def start(self) -> None:
        """Start a scheduler, whose watch begins with what the server has."""
        self.watched: dict[ObjectKey, core.Pod] = {}
        self.calls = CallQueue(self.watched.get)
        self.nominator = Nominator(self.is_pending)
        self.queue = PrioritySchedulingQueue(
            profiles={"default-scheduler": QueueProfile()},
            sort=PrioritySort({}, cast("Handle", None)),
            nominator=self.nominator,
        )
        self.handlers = EventHandlers(
            self.queue,
            Cache(),
            is_ours=lambda name: True,
            with_nomination=self.calls.nominations.apply,
        )
        self.sent: list[Sent] = []
        self.awaited: set[str] = set()
        self.decided: dict[str, Decision] = {}  # by uid: the latest one that counts
        self.decisions = 0
        self.others: set[str] = set()  # uids whose nomination another client may have written
        self.server.events.clear()
        for key, made in self.server.pods.items():
            self.watched[key] = made
            self.handlers.pod_added(made, 0.0)

    def is_pending(self, info: PodInfo) -> bool:
        found = self.watched.get(info.key)
        return found is not None and found.metadata.uid == info.uid and not found.spec.nodeName

    # ---- others ----

    @rule(name=NAMES, what=DISTURBANCES, nominated=NODES)
    def disturb(self, name: str, what: str, nominated: str) -> None:
        """Other clients change the pod or the scheduler restarts."""
        key = ObjectKey("default", name)
        if what == "restart":  # calls that have not reached the server never will
            self.start()
        elif key not in self.server.pods:
            self.create(name, nominated)
        elif what == "delete":
            self.server.events.append((self.server.pods.pop(key), None))
        elif what == "nominate":
            self.others.add(self.server.pods[key].metadata.uid)
            self.server.patch(key, {"status": {"nominatedNodeName": nominated}})
        elif what == "change":
            self.server.put(self.server.copy(key))
        elif not self.server.pods[key].spec.nodeName:
            new = self.server.copy(key)
            new.spec.nodeName = "n1"
            self.server.put(new)

    def create(self, name: str, nominated: str = "") -> None:
        made = pod(name, nominated=nominated).pod
        self.server.created += 1
        made.metadata.uid = f"uid-{name}-{self.server.created}"
        self.server.put(made)

    @precondition(lambda self: self.server.events)
    @rule()
    def watch(self) -> None:
        old, new = self.server.events.pop(0)
        if new is None:
            assert old is not None
            del self.watched[key_of(old)]
            self.decided.pop(old.metadata.uid, None)
            self.handlers.pod_deleted(old, False, 0.0)
            self.carry_out(self.calls.forget(old.metadata.uid))
            return
        self.watched[key_of(new)] = new
        if old is None:
            self.handlers.pod_added(new, 0.0)
        else:
            self.handlers.pod_updated(old, new, 0.0)

    # ---- the scheduler ----

    @rule(name=NAMES, node=DECISIONS, at_once=st.booleans())
    def fail(self, name: str, node: str | None, at_once: bool) -> None:
        """Try the pod, which fails; its nomination is set, cleared, or left alone.

        `at_once`: the loop takes the call before anything else happens.
        """
        key = ObjectKey("default", name)
        found = self.watched.get(key)
        if found is None or found.spec.nodeName:
            return
        self.queue.activate([found], 0.0)
        info = self.queue.pop_specific(key)
        assert info is not None
        info.unschedulable_plugins = {"NodeResourcesFit"}
        nominating = None if node is None else NominatingInfo(NominatingMode.Override, node)
        self.calls.decide(PodStatusPatch(pod=info.pod, reason="Unschedulable", nominating=nominating))
        self.decisions += 1
        if node is not None:
            self.decided[found.metadata.uid] = Decision(node, self.decisions)
        requeue_failed(self.queue, info, self.calls.cached(key), nominating, 0.0)
        if at_once:
            self.take()

    @rule(name=NAMES)
    def clear(self, name: str) -> None:
        """A preemption takes the pod's nominated node."""
        found = self.watched.get(ObjectKey("default", name))
        if found is None or not self.nominator.node_of(found.metadata.uid):
            return
        self.decisions += 1
        self.decided[found.metadata.uid] = Decision("", self.decisions)
        self.carry_out(self.calls.clear_nomination(found))

    @rule(name=NAMES)
    def wait(self, name: str) -> None:
        """A binding waits for the pod's calls."""
        found = self.watched.get(ObjectKey("default", name))
        if found is not None and self.calls.hurry(found.metadata.uid):
            self.awaited.add(found.metadata.uid)

    @precondition(lambda self: self.calls.waiting)
    @rule()
    def take(self) -> None:
        self.sent += [Sent(call) for call in self.calls.take()]

    @precondition(lambda self: any(not sent.has_arrived for sent in self.sent))
    @rule(data=st.data())
    def arrive(self, data: st.DataObject) -> None:
        """Let a call reach the server, which answers later."""
        self.reach(data.draw(st.sampled_from([sent for sent in self.sent if not sent.has_arrived])))

    def reach(self, sent: Sent) -> None:
        sent.has_arrived = True
        call = sent.call
        request = self.calls.request(call, 0.0)
        if request.patch is None:
            sent.answer = request.base
        else:
            sent.answer = self.server.patch(call.key, request.patch)
        now = self.server.pods.get(call.key)
        if now is not None and now.metadata.uid != call.uid:
            self.others.add(now.metadata.uid)  # no call has a precondition
        elif now is not None and call.node_name is not None and call.uid not in self.others:
            assert now.status.nominatedNodeName == call.node_name, "the decision was not written"

    @precondition(lambda self: self.sent)
    @rule(
        data=st.data(), result=st.sampled_from([Trigger.FAILED, Trigger.UNREACHABLE]), arrives=st.booleans()
    )
    def lose(self, data: st.DataObject, result: Trigger, arrives: bool) -> None:
        """Conflict, or an error: nothing was written. Unreachable: it is unknown whether it was."""
        sent = data.draw(st.sampled_from(self.sent))
        if result is Trigger.UNREACHABLE and arrives and not sent.has_arrived:
            self.reach(sent)
        if result is Trigger.UNREACHABLE or not sent.has_arrived:
            self.end([(sent, result)])

    @precondition(lambda self: self.sent)
    @rule(data=st.data(), several=st.booleans())
    def succeed(self, data: st.DataObject, several: bool) -> None:
        """Let the server answer one call, or all: written, or not found."""
        chosen = list(self.sent) if several else [data.draw(st.sampled_from(self.sent))]
        for sent in chosen:
            if not sent.has_arrived:
                self.reach(sent)
        self.end([(sent, Trigger.FAILED if sent.answer is None else Trigger.WRITTEN) for sent in chosen])

    def end(self, ended: list[tuple[Sent, Trigger]]) -> None:
        for sent, result in ended:
            self.sent.remove(sent)
            uid, call = sent.call.uid, sent.call
            is_last = self.calls.state(uid) is CallState.UNDER_WAY
            if result is Trigger.UNREACHABLE and not (is_last and uid in self.awaited):
                continue
            decision = self.decided.get(uid)
            if call.node_name is None or decision is None or decision.number > call.number:
                continue
            if result is Trigger.WRITTEN and sent.answer is not None:
                decision.revision = resource_version_of(sent.answer)
            else:
                del self.decided[uid]
        outcomes = [
            Outcome(sent.call, result, sent.answer if result is Trigger.WRITTEN else None)
            for sent, result in ended
        ]
        self.carry_out(self.calls.finish(outcomes))

    def carry_out(self, consequences: list[Consequence]) -> None:
        for each in consequences:
            if isinstance(each, Renominated):
                self.handlers.nomination_settled(each.old, each.new, 0.0)
            elif isinstance(each, Released):
                self.awaited.discard(each.uid)

    # ---- what always holds ----

    @invariant()
    def the_table_holds(self) -> None:
        self.calls.validate()
        self.queue.validate()

    @invariant()
    def each_pod_has_one_call_under_way(self) -> None:
        uids = [sent.call.uid for sent in self.sent]
        assert len(uids) == len(set(uids)) == self.calls.under_way

    @invariant()
    def who_waits_has_something_to_wait_for(self) -> None:
        assert all(self.calls.state(uid) is not CallState.NONE for uid in self.awaited)

    @invariant()
    def a_decision_counts_until_the_watch_shows_it_or_it_is_lost(self) -> None:
        for key, found in self.watched.items():
            decision = self.decided.get(found.metadata.uid)
            if decision is None:
                continue
            if decision.revision is not None and resource_version_of(found) >= decision.revision:
                del self.decided[found.metadata.uid]  # from now on others decide
                continue
            counts = self.calls.cached(key)
            assert counts is not None
            assert counts.status.nominatedNodeName == decision.node

    @invariant()
    def the_nominator_has_what_counts(self) -> None:
        for key, found in self.watched.items():
            counts = self.calls.cached(key)
            assert counts is not None
            node = "" if found.spec.nodeName else counts.status.nominatedNodeName
            assert self.nominator.node_of(found.metadata.uid) == node

    def teardown(self) -> None:
        """The server is there again and the watch catches up: all calls end, and all agree."""
        for _ in range(DRAIN_MAX):
            self.take()
            if not self.sent:
                break
            for sent in self.sent:
                if not sent.has_arrived:
                    self.reach(sent)
            self.end(
                [(sent, Trigger.FAILED if sent.answer is None else Trigger.WRITTEN) for sent in self.sent]
            )
        assert not len(self.calls)
        assert not self.awaited
        while self.server.events:
            self.watch()
        assert self.watched == self.server.pods
        self.the_nominator_has_what_counts()
        for key, found in self.watched.items():
            assert self.calls.cached(key) is found
        assert not len(self.calls.nominations)


TestCallQueue = CallMachine.TestCase
TestCallQueue.settings = settings(max_examples=150, stateful_step_count=60)
