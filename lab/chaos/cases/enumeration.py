"""The cases that an exploration may run: single perturbations of an observed run, and pairs. No I/O."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import zip_longest

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.observations import Activity
from nominee.lab.chaos.cases.perturbations import (
    BY_ANOTHER,
    ETCD,
    Absence,
    Action,
    AtFailpoint,
    Jump,
    Loss,
    Move,
    OfCall,
    OfClock,
    OfNetwork,
    OfProcess,
    OfWatch,
    Partition,
    Perturbation,
    ToServer,
    View,
)
from nominee.lab.chaos.cases.tolerance import is_among

PAIRS_MAX = 10_000
_API_SERVER = "apiserver"
_WATCH = "Watch"
_LEASE_GRANT = "LeaseGrant"
"""For events only."""
_READS = frozenset({"Get", "List", "Range", "NodeGroups", "NodeGroupForNode", "NodeGroupNodes"})
"""Calls that change nothing."""
_OF_VERSIONS = frozenset({"Bind", "Delete", "Evict", "Patch", "Txn", "Update"})
"""Calls that another write of the object may overtake."""
_ABOUT_PODS = (
    *(f"scheduler.{step}" for step in ("cycle", "assume", "nominate", "permit", "prebind", "bind")),
    *(f"scheduler.{step}" for step in ("unreserve", "status")),
    *(f"kubelet.{step}" for step in ("admit", "start", "actuate", "status")),
)
"""The beginnings of the failpoints whose labels name the pod."""
_WRITE = "apiserver.write.before"
"""Its labels name the object that is to be written; some are left alone (lab/chaos/interfering.py)."""
_NOISE = frozenset({"events", "events.events.k8s.io"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The cases of an exploration: the allowed perturbations.

    `only`: patterns as of a shell, of which an identifier of a single perturbation must match one. `hits`: at
    how many hits of a failpoint, or calls, a perturbation is tried, the first and others drawn from the seed.
    `together`: how many perturbations of several processes share a run, at most.
    `may_lose`: objects may be gone for good afterwards, as where the rules of rest alone count.
    `steps` are the steps at which a perturbation may begin. `lagging` is the API server that the
    processes in `served` may move to, "" if there is only one.
    """

    actions: Sequence[Action] = tuple(Action)
    views: Sequence[View] = tuple(View)
    losses: Sequence[Loss] = tuple(Loss)
    partitions: Sequence[Partition] = tuple(Partition)
    jumps: Sequence[Jump] = tuple(Jump)
    absences: Sequence[Absence] = tuple(Absence)
    moves: Sequence[Move] = tuple(Move)
    pairs: bool = False
    together: int = 1
    may_lose: bool = False
    only: Sequence[str] = ()
    hits: int = 2
    seed: int = 0
    steps: Sequence[int] = ()
    lagging: str = ""
    served: Sequence[str] = ()
    except_failpoints: frozenset[tuple[str, str]] = field(default_factory=frozenset)
    """Failpoints, with their process, that the scenario arms itself."""
    absent: frozenset[tuple[str, int]] = field(default_factory=frozenset)
    """Components that the scenario has stopped, with the steps while they are down."""
    pauses: frozenset[str] = frozenset()
    """Components that the scenario pauses."""

    def includes(self, perturbation: Perturbation) -> bool:
        """Return whether a pattern covers a perturbation."""
        return not self.only or any(fnmatchcase(str(perturbation), pattern) for pattern in self.only)


def singles(activity: Activity, scope: Scope) -> list[Case]:
    """Return the cases of one perturbation of the activity of an undisturbed run."""
    rng = random.Random(scope.seed)
    found: list[Perturbation] = [
        *_at_failpoints(activity, scope, rng),
        *_of_watches(activity, scope, rng),
        *_of_calls(activity, scope, rng),
        *_of_networks(activity, scope),
        *_of_clocks(activity, scope),
        *_of_processes(activity, scope),
    ]
    if scope.lagging:
        found += [
            ToServer(process, scope.lagging, move, step)
            for move in scope.moves
            for process in scope.served
            for step in scope.steps
        ]
    return [Case.of(each) for each in found if scope.includes(each)]


def _at_failpoints(activity: Activity, scope: Scope, rng: random.Random) -> Iterator[Perturbation]:
    """Yield every action at one hit of each failpoint, then at the other ones."""
    passed = [each for each in _in_turns(activity.hits, rng) if each[:2] not in scope.except_failpoints]
    for places in _at_some(passed, scope.hits, rng):
        for action in scope.actions:
            yield from (
                AtFailpoint(process, name, action, hit)
                for process, name, hit in places
                if _is_possible_at(name, action, scope)
            )


def _of_watches(activity: Activity, scope: Scope, rng: random.Random) -> Iterator[Perturbation]:
    """Yield every change of the watches of kinds of which an object changed, from each step on."""
    watched: list[tuple[str, str]] = []
    for process, calls in activity.calls.items():
        for call in sorted(calls):
            server, method, kind = _parts(call)
            if method != _WATCH:
                continue
            if server == ETCD:
                watched.append((process, ETCD))
            elif kind in activity.kinds and kind not in _NOISE:
                watched.append((process, kind.partition(".")[0]))
    for view in scope.views:
        found = [
            OfWatch(process, kind, view, step)
            for process, kind in dict.fromkeys(watched)
            if _is_possible(view, kind)
            for step in _steps(process, activity, scope)
        ]
        rng.shuffle(found)
        yield from found


def _of_calls(activity: Activity, scope: Scope, rng: random.Random) -> Iterator[Perturbation]:
    """Yield every fault of one of each sort of calls, then of the other ones."""
    made = [
        (process, call, count)
        for process, call, count in _in_turns(activity.calls, rng)
        if _parts(call)[1] not in (_WATCH, _LEASE_GRANT) and _parts(call)[2] not in _NOISE
    ]
    for places in _at_some(made, scope.hits, rng):
        for loss in scope.losses:
            for process, call, number in places:
                server, method, kind = _parts(call)
                if _changes_result(loss, method, kind):
                    yield OfCall(process, server, method, kind.partition(".")[0], loss, number)


def _at_some(
    passed: Sequence[tuple[str, str, int]], hits: int, rng: random.Random
) -> tuple[list[tuple[str, str, int]], list[tuple[str, str, int]]]:
    """Return process, name and number of one hit of each place, and those of the other hits.

    With several hits the one that comes first is drawn, too: a short exploration sees beginnings and ends.
    """
    one: list[tuple[str, str, int]] = []
    others: list[tuple[str, str, int]] = []
    for process, name, count in passed:
        numbers = [1, *sorted(rng.sample(range(2, count + 1), min(hits, count) - 1))]
        first = numbers.pop(rng.randrange(len(numbers)))
        one.append((process, name, first))
        others += [(process, name, number) for number in numbers]
    return one, others


def _is_possible_at(failpoint: str, action: Action, scope: Scope) -> bool:
    """Return whether an action is possible: one about an object where a task is at work on one.

    And one that loses objects where that may be.
    """
    if action not in BY_ANOTHER:
        return True
    if failpoint == _WRITE:
        return scope.may_lose or action is Action.TOUCH
    return failpoint.startswith(_ABOUT_PODS) and (scope.may_lose or action is not Action.REMOVE)


def _is_possible(view: View, kind: str) -> bool:
    # An API server that is blind for so long shows old leases to all: every node seems to be silent.
    return not (view in (View.MERGE, View.SILENT) and kind == ETCD)


def _changes_result(loss: Loss, method: str, kind: str) -> bool:
    """Return whether a fault differs from others: an answer of a read that is lost is as a lost request."""
    if loss is Loss.CONFLICT:
        return bool(kind) and method in _OF_VERSIONS
    return not (loss in (Loss.LOSE_RESPONSE, Loss.LOSE_RESPONSES) and method in _READS)


def _is_call(name: str, each: OfCall) -> bool:
    server, method, kind = _parts(name)
    return (server, method, kind.partition(".")[0]) == (each.server, each.method, each.kind)


def _of_networks(activity: Activity, scope: Scope) -> Iterator[Perturbation]:
    """Yield partitions between each process and the servers that it calls, from each step on."""
    for partition in scope.partitions:
        for process, calls in activity.calls.items():
            for server in sorted({_parts(call)[0] for call in calls}):
                yield from (
                    OfNetwork(process, server, partition, step) for step in _steps(process, activity, scope)
                )


def _of_clocks(activity: Activity, scope: Scope) -> Iterator[Perturbation]:
    """Yield jumps of the clocks.

    Not of API servers, whose time stamps order the history, nor of the cloud, which is outside the cluster.
    """
    for jump in scope.jumps:
        for process in activity.calls:
            if process.partition("-")[0] not in (_API_SERVER, "cloud"):
                yield from (OfClock(process, jump, step) for step in _steps(process, activity, scope))


def _of_processes(activity: Activity, scope: Scope) -> Iterator[Perturbation]:
    """Yield absences before all steps but the first, which leaves a process nothing to take over."""
    if Action.CRASH in scope.actions:
        for absence in scope.absences:
            for step in reversed(scope.steps):
                for process in activity.calls:
                    is_due = step in _steps(process, activity, scope)[1:]
                    if is_due and _is_possible_for(process, absence, scope):
                        yield OfProcess(process, absence, step)


def _is_possible_for(process: str, absence: Absence, scope: Scope) -> bool:
    """Return whether an absence is possible: a step cannot pause a process that waits to be started again."""
    return absence is not Absence.CRASH_LOOP or not is_among(process, scope.pauses)


def _steps(process: str, activity: Activity, scope: Scope) -> list[int]:
    """Return the steps at which a process runs."""
    absent = {
        step
        for component, step in scope.absent
        if process == component or process.startswith(f"{component}-")
    }
    return [step for step in scope.steps if step > activity.launches.get(process, 0) and step not in absent]


def _parts(call: str) -> tuple[str, str, str]:
    """Return server, method and kind of the name of a call."""
    server, method, *kind = call.split(".", 2)
    return server, method, kind[0] if kind else ""


def _in_turns(counts: Mapping[str, Mapping[str, int]], rng: random.Random) -> Iterator[tuple[str, str, int]]:
    """Yield process, name and count; processes take turns, and the order of each one's names is drawn.

    So a short exploration comes to each process, and explorations with other seeds to other places.
    """
    rows = []
    for process, names in counts.items():
        row = [(process, name, count) for name, count in sorted(names.items()) if count]
        rng.shuffle(row)
        rows.append(row)
    for each in zip_longest(*rows):
        yield from (place for place in each if place is not None)


def pairs(
    held: Sequence[Case], scope: Scope, promise: Callable[[Case], int] = lambda case: 0
) -> Iterator[Case]:
    """Yield pairs of single perturbations, up to PAIRS_MAX.

    Pairs of perturbations of two processes come first, then those whose parts promise most; among equal ones
    the order is drawn from the seed. Two actions at the same hit of a failpoint, or two changes of one watch,
    are no pair.
    """
    alone = [each.perturbations[0] for each in held if len(each.perturbations) == 1]
    indices = [
        (first, second)
        for first in range(len(alone))
        for second in range(first + 1, len(alone))
        if alone[first].place != alone[second].place
    ]
    random.Random(scope.seed).shuffle(indices)
    promises = [promise(Case.of(each)) for each in alone]
    indices.sort(
        key=lambda pair: (
            alone[pair[0]].component == alone[pair[1]].component,
            -promises[pair[0]] - promises[pair[1]],
        )
    )
    for first, second in indices[:PAIRS_MAX]:
        yield Case.of(alone[first], alone[second])


def neighbours(each: Perturbation, activity: Activity, scope: Scope) -> Iterator[Case]:
    """Yield the cases near a perturbation: a little earlier or later, and others at the same place."""
    found: list[Perturbation] = []
    match each:
        case AtFailpoint():
            count = activity.hits.get(each.component, {}).get(each.failpoint, 0)
            found += [replace(each, hit=hit) for hit in _near(each.hit, range(1, count + 1))]
            found += [
                replace(each, action=action)
                for action in scope.actions
                if _is_possible_at(each.failpoint, action, scope)
            ]
        case OfCall():
            counts = activity.calls.get(each.component, {})
            count = max((counts[name] for name in counts if _is_call(name, each)), default=1)
            found += [replace(each, number=number) for number in _near(each.number, range(1, count + 1))]
            found += [
                replace(each, loss=loss)
                for loss in scope.losses
                if _changes_result(loss, each.method, each.kind)
            ]
        case OfWatch():
            found += [replace(each, step=step) for step in _near(each.step, scope.steps)]
            found += [replace(each, view=view) for view in scope.views if _is_possible(view, each.kind)]
        case OfProcess():
            found += [replace(each, step=step) for step in _near(each.step, scope.steps)]
            found += [
                replace(each, absence=absence)
                for absence in scope.absences
                if _is_possible_for(each.component, absence, scope)
            ]
        case OfNetwork() | OfClock():
            found += [replace(each, step=step) for step in _near(each.step, scope.steps)]
        case ToServer():
            found += [replace(each, step=step) for step in _near(each.step, scope.steps)]
            found += [replace(each, move=move) for move in scope.moves]
    yield from (Case.of(other) for other in dict.fromkeys(found) if other != each and scope.includes(other))


def _near(number: int, numbers: Sequence[int]) -> list[int]:
    """Return the next smaller and the next larger number, and about twice the number."""
    smaller = [other for other in numbers if other < number][-1:]
    larger = [other for other in numbers if other > number]
    return [*smaller, *larger[:1], *[other for other in larger if other >= 2 * number][:1]]
