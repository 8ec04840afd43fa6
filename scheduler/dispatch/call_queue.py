"""Keep the calls that write pods' statuses: those that wait, and those that are under way.

A pod whose attempt failed may be tried again, and even bound, before its failure is written; its calls are
therefore made one after another, and its binding waits for them. While the API server is unavailable the
queue has what was last decided for each pod. The table in `states.py` has the states and the invariants.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from cachetools import LRUCache

from nominee.machinery.api.objects import ObjectKey, key_of, resource_version_of
from nominee.machinery.api.pb import core
from nominee.scheduler.dispatch.api_calls import (
    CallPatch,
    Consequence,
    Lost,
    Outcome,
    PodStatusPatch,
    Released,
    Renominated,
    clearing,
)
from nominee.scheduler.dispatch.nominations import PendingNominations
from nominee.scheduler.dispatch.states import TRANSITIONS, CallState, Effect, Trigger
from nominee.scheduler.pod_status import status_patch

UNDER_WAY_MAX: Final = 64
ANSWERS_MAX: Final = 10_000
LOG_LENGTH_MAX: Final = 16


@dataclass(slots=True)
class _Calls:
    """The calls of one pod."""

    state: CallState = CallState.NONE
    waiting: PodStatusPatch | None = None
    under_way: PodStatusPatch | None = None
    is_awaited: bool = False  # a binding waits for them
    log: deque[Trigger] = field(default_factory=lambda: deque(maxlen=LOG_LENGTH_MAX))


class _Line:
    """The pods whose calls can begin: those that a binding waits for, then the others, each in order."""

    def __init__(self) -> None:
        self._awaited: OrderedDict[str, None] = OrderedDict()
        self._others: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, uid: str) -> bool:
        return uid in self._awaited or uid in self._others

    def __len__(self) -> int:
        return len(self._awaited) + len(self._others)

    def put(self, uid: str, *, is_awaited: bool) -> None:
        """Put a pod at the end of its part; an awaited one leaves the other part."""
        if is_awaited:
            self._others.pop(uid, None)
        (self._awaited if is_awaited else self._others).setdefault(uid)

    def discard(self, uid: str) -> None:
        self._awaited.pop(uid, None)
        self._others.pop(uid, None)

    def pop(self) -> str:
        """Take the first one; there must be one."""
        return (self._awaited or self._others).popitem(last=False)[0]


class CallQueue:
    """The calls by uid. No method awaits; the loop performs the calls of `take` and reports to `finish`.

    `cached` returns the pod that the watch last showed under a name. `wake` is called when `take` may return
    calls again.
    """

    def __init__(
        self,
        cached: Callable[[ObjectKey], core.Pod | None],
        *,
        observed_generation: bool = True,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._cached = cached
        self._observed_generation = observed_generation
        self._wake = wake
        self._by_uid: dict[str, _Calls] = {}  # of pods that have calls
        self._line = _Line()
        self._under_way = 0
        self._decisions = 0
        self._answers: LRUCache[str, core.Pod] = LRUCache(ANSWERS_MAX)  # newer than what the watch shows
        self._uncertain: set[str] = set()  # a write may have been made whose response was lost
        self.nominations = PendingNominations()

    def __len__(self) -> int:
        """Return the number of pods that have calls."""
        return len(self._by_uid)

    @property
    def waiting(self) -> int:
        """Return how many calls wait."""
        return sum(1 for calls in self._by_uid.values() if calls.waiting is not None)

    @property
    def under_way(self) -> int:
        """Return how many calls are under way."""
        return self._under_way

    def state(self, uid: str) -> CallState:
        """Return the state of the pod's calls."""
        calls = self._by_uid.get(uid)
        return CallState.NONE if calls is None else calls.state

    def cached(self, key: ObjectKey) -> core.Pod | None:
        """Return the pod that the watch last showed under a name, with the nomination that counts."""
        pod = self._cached(key)
        return None if pod is None else self.nominations.apply(pod)

    def decide(self, call: PodStatusPatch) -> None:
        """Take a call; the nomination in it counts from now on."""
        self._decisions += 1
        self._apply(call.uid, Trigger.DECIDED, decided=replace(call, number=self._decisions))
        self._wake()

    def clear_nomination(self, pod: core.Pod) -> list[Consequence]:
        """Decide to clear a pending pod's nomination; return the consequence that is due at once."""
        before = self.cached(key_of(pod))
        if before is None or before.metadata.uid != pod.metadata.uid:
            return []  # deleted: its nomination went with it
        self.decide(clearing(before))
        after = self.cached(key_of(pod))
        return [] if after is None or after is before else [Renominated(before, after)]

    def take(self) -> list[PodStatusPatch]:
        """Return all calls that can begin now; `finish` must be called for each of them."""
        taken: list[PodStatusPatch] = []
        while self._line and self._under_way < UNDER_WAY_MAX:
            uid = self._line.pop()
            self._apply(uid, Trigger.TAKEN)
            call = self._by_uid[uid].under_way
            assert call is not None, "BEGIN makes it so"
            taken.append(call)
        return taken

    def request(self, call: PodStatusPatch, now: float) -> CallPatch:
        """Return the patch of a call that was taken, against the newest known state. Recreated pod: none."""
        base = self._base(call)
        if base is None:
            return CallPatch(call.pod, None)
        patch = status_patch(
            base,
            call.nominating,
            reason=call.reason,
            message=call.message,
            now=now,
            observed_generation=self._observed_generation,
            is_uncertain=call.uid in self._uncertain,
        )
        return CallPatch(base, patch)

    def finish(self, outcomes: Iterable[Outcome]) -> list[Consequence]:
        """End calls that were taken; return the consequences for others, to be performed in order."""
        consequences: list[Consequence] = []
        for outcome in outcomes:
            trigger = outcome.result
            calls = self._by_uid[outcome.call.uid]
            if trigger is Trigger.UNREACHABLE and not self._is_bound(outcome.call):
                self._uncertain.add(outcome.call.uid)
            elif trigger is Trigger.WRITTEN and outcome.call.node_name is not None:
                self._uncertain.discard(outcome.call.uid)
            # A binding does not wait for a server that is away: the pod's last call ends.
            if trigger is Trigger.UNREACHABLE and calls.is_awaited and calls.state is CallState.UNDER_WAY:
                trigger = Trigger.FAILED
            consequences += self._apply(outcome.call.uid, trigger, outcome=outcome)
        self._wake()
        return consequences

    def bound(self, uid: str) -> None:
        """Take the binding of a pod: no later call writes its nomination."""
        self._uncertain.discard(uid)

    def _is_bound(self, call: PodStatusPatch) -> bool:
        shown = self._cached(call.key)
        return shown is not None and shown.metadata.uid == call.uid and bool(shown.spec.nodeName)

    def forget(self, uid: str) -> list[Consequence]:
        """Take the deletion of a pod; return the consequences."""
        self._answers.pop(uid, None)
        self._uncertain.discard(uid)
        return self._apply(uid, Trigger.DELETED)

    def hurry(self, uid: str) -> bool:
        """Let the pod's calls go before others, since they are waited for; return whether there are any."""
        calls = self._by_uid.get(uid)
        if calls is None:
            return False
        calls.is_awaited = True
        if uid in self._line:
            self._line.put(uid, is_awaited=True)
        return True

    def validate(self) -> None:
        """Check the invariants. For tests."""
        has_waiting, is_begun = (
            {CallState.WAITING, CallState.FOLLOWED},
            {CallState.UNDER_WAY, CallState.FOLLOWED},
        )
        for uid, calls in self._by_uid.items():
            assert calls.state is not CallState.NONE, f"{uid} is kept without a call"
            assert (calls.waiting is not None) == (calls.state in has_waiting), f"{uid}: {calls}"
            assert (calls.under_way is not None) == (calls.state in is_begun), f"{uid}: {calls}"
            assert (uid in self._line) == (calls.state is CallState.WAITING), f"{uid}: {calls}"
        begun = [calls for calls in self._by_uid.values() if calls.under_way is not None]
        assert len(begun) == self._under_way <= UNDER_WAY_MAX
        assert len(self._line) == len({uid for uid in self._by_uid if uid in self._line})
        for uid, number in self.nominations.unwritten().items():
            kept = self._by_uid.get(uid, _Calls())
            own = [call for call in (kept.waiting, kept.under_way) if call is not None]
            assert number in [call.number for call in own], f"{uid}: no call writes the nomination"

    # The effects

    def _apply(
        self,
        uid: str,
        trigger: Trigger,
        *,
        decided: PodStatusPatch | None = None,
        outcome: Outcome | None = None,
    ) -> list[Consequence]:
        """Move the pod's calls to their next state and perform the effects.

        Raises:
            InvalidTransitionError: the table does not allow the trigger.
        """
        calls = self._by_uid.get(uid) or _Calls()
        transition = TRANSITIONS.transition(
            calls.state,
            trigger,
            lambda: (
                f'pod {uid}: no transition from "{calls.state}" for "{trigger}"; '
                f"before: {', '.join(calls.log)}"
            ),
        )
        calls.state = transition.to
        calls.log.append(trigger)
        consequences: list[Consequence] = []
        for effect in transition.effects:
            match effect:
                case Effect.KEEP:
                    assert decided is not None, "DECIDED brings the call"
                    self._keep(calls, decided, calls.waiting)
                case Effect.LINE_UP:
                    self._line.put(uid, is_awaited=calls.is_awaited)
                case Effect.BEGIN:
                    calls.under_way, calls.waiting = calls.waiting, None
                    self._under_way += 1
                case Effect.RETURN:
                    self._return(calls, self._end(calls))
                case Effect.REPORT:
                    assert outcome is not None, "a call fails with an outcome"
                    consequences.append(Lost(outcome))
                case Effect.SETTLE:
                    assert outcome is not None, "a call ends with an outcome"
                    consequences += self._settle(self._end(calls), outcome.pod)
                case Effect.DROP:
                    calls.waiting = None
                    self._line.discard(uid)
                case Effect.FORGET:
                    self.nominations.forget(uid)
                case Effect.RELEASE:
                    consequences.append(Released(uid))
        if calls.state is CallState.NONE:
            self._by_uid.pop(uid, None)
        else:
            self._by_uid[uid] = calls
        return consequences

    def _keep(self, calls: _Calls, later: PodStatusPatch, earlier: PodStatusPatch | None) -> None:
        """Let the later call wait, which includes the earlier one; its nomination counts."""
        call = later if earlier is None else later.including(earlier)
        calls.waiting = call
        if call.node_name is not None:
            self.nominations.decide(call.uid, call.node_name, call.number)

    def _return(self, calls: _Calls, call: PodStatusPatch) -> None:
        if calls.waiting is None:
            calls.waiting = call
        else:
            self._keep(calls, calls.waiting, call)

    def _end(self, calls: _Calls) -> PodStatusPatch:
        call, calls.under_way = calls.under_way, None
        assert call is not None, "a call ends that is under way"
        self._under_way -= 1
        return call

    def _settle(self, call: PodStatusPatch, written: core.Pod | None) -> list[Consequence]:
        """Compare with the watch, which may have shown the write already, and later changes.

        `written`: the pod with the write; None: it failed.
        """
        shown = self._cached(call.key)
        if shown is None or shown.metadata.uid != call.uid:
            self.nominations.forget(call.uid)
            self._uncertain.discard(call.uid)
            return []
        revision = None if written is None else resource_version_of(written)
        if written is not None and resource_version_of(written) > resource_version_of(shown):
            self._answers[call.uid] = written
        before = self.nominations.apply(shown)
        self.nominations.written(call.uid, call.number, revision)
        after = self.nominations.apply(shown)
        if before.status.nominatedNodeName == after.status.nominatedNodeName:
            return []
        return [Renominated(before, after)]

    def _base(self, call: PodStatusPatch) -> core.Pod | None:
        """Return the newest known state: the cached pod, or our last write if that is newer.

        None: another pod has the name by now. The patch has no uid precondition, as upstream's has none.
        """
        pod = call.pod
        shown = self._cached(call.key)
        if shown is not None:
            if shown.metadata.uid != call.uid:
                return None
            pod = shown
        answer = self._answers.get(call.uid)
        is_newer = answer is not None and resource_version_of(answer) > resource_version_of(pod)
        return answer if is_newer else pod
