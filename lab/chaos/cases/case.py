"""A case of an exploration: the perturbations of one run of a scenario, and its text form. No I/O.

The identifier of a case is the list of its perturbations, joined by `+`:

    scheduler:scheduler.bind.after=crash        SIGKILL at the first hit of the failpoint
    kubelet-0:kubelet.status.before=error@3     the third hit fails
    scheduler:pods=stale@2                      the watch of pods is held while step 2 takes effect
    scheduler:apiserver.Bind.pods=hang@2        the second binding has no answer
    scheduler:apiserver=cut@2                   no call reaches the API server for some time from step 2 on
    controllers:clock=ahead@2                   the clock jumps at step 2
    kubelet-0:process=restart@2                 is killed, and started again, before step 2
    kubelet-0:process=away@2                    is killed before step 2, and started again 65 s later
    kubelet-0:process=crash-loop@2              is killed again and again, from step 2 on
    kubelet-0:apiserver-1=travel@2              restarts, and is served by a server that has not seen step 2
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from nominee.lab.chaos.cases.perturbations import (
    CLOCK,
    PROCESS,
    Absence,
    Action,
    AtFailpoint,
    FromStep,
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

PERTURBATIONS_MAX = 8
_TEXT = re.compile(
    r"(?P<component>[a-z0-9]+(?:-[a-z0-9]+)*):(?P<subject>[A-Za-z0-9._-]+)=(?P<kind>[a-z]+(?:-[a-z]+)*)"
    r"(?:@(?P<at>[1-9][0-9]*))?"
)
_SERVER = re.compile(r"(apiserver|etcd|cloud)(-[0-9]+)?")


class CaseError(ValueError):
    """A text that is not the identifier of a case; the message names the expected form."""


@dataclass(frozen=True, slots=True)
class Case:
    """The perturbations of one run, sorted; the undisturbed run has none."""

    perturbations: tuple[Perturbation, ...] = ()

    @classmethod
    def of(cls, *perturbations: Perturbation) -> Case:
        """Return the case of these perturbations, in any order."""
        return cls(tuple(sorted(set(perturbations), key=str)))

    @classmethod
    def parse(cls, text: str) -> Case:
        """Return the case with this identifier.

        Raises:
            CaseError: the text is not one.
        """
        parts = [part for part in text.strip().split("+") if part]
        if len(parts) > PERTURBATIONS_MAX:
            raise CaseError(f"{text!r}: at most {PERTURBATIONS_MAX} perturbations")
        return cls.of(*(_perturbation(part) for part in parts))

    @property
    def killed(self) -> frozenset[str]:
        """Return the processes that are killed while the scenario is played."""
        return frozenset(
            each.component
            for each in self.perturbations
            if isinstance(each, OfProcess) or (isinstance(each, AtFailpoint) and each.action is Action.CRASH)
        )

    @property
    def components(self) -> frozenset[str]:
        """Return the processes that the perturbations disturb."""
        return frozenset(each.component for each in self.perturbations)

    @property
    def failpoints(self) -> list[AtFailpoint]:
        """Return the actions at failpoints."""
        return [each for each in self.perturbations if isinstance(each, AtFailpoint)]

    @property
    def calls(self) -> list[OfCall]:
        """Return the faults of calls."""
        return [each for each in self.perturbations if isinstance(each, OfCall)]

    @property
    def from_steps(self) -> list[FromStep]:
        """Return the perturbations that begin with a step."""
        return [each for each in self.perturbations if not isinstance(each, AtFailpoint | OfCall)]

    def parts(self) -> list[Case]:
        """Return the cases with one perturbation less; none of a single one."""
        if len(self.perturbations) < 2:
            return []
        return [
            Case.of(*(each for each in self.perturbations if each != left)) for left in self.perturbations
        ]

    def describe(self) -> str:
        """Return the disturbance in one sentence."""
        return "; ".join(each.describe() for each in self.perturbations) or "nothing is disturbed"

    def __str__(self) -> str:
        return "+".join(str(each) for each in self.perturbations)


_ACTIONS = {each.value: each for each in Action}
_VIEWS = {each.value: each for each in View}
_LOSSES = {each.value: each for each in Loss}
_PARTITIONS = {each.value: each for each in Partition}
_JUMPS = {each.value: each for each in Jump}
_ABSENCES = {each.value: each for each in Absence}
_MOVES = {each.value: each for each in Move}


def _perturbation(text: str) -> Perturbation:
    match = _TEXT.fullmatch(text)
    if match is None:
        raise CaseError(
            f"{text!r}: expected COMPONENT:FAILPOINT=ACTION[@HIT], COMPONENT:KIND=VIEW[@STEP], "
            "COMPONENT:SERVER.METHOD[.KIND]=FAULT[@NUMBER], COMPONENT:SERVER=cut[@STEP], "
            "COMPONENT:clock=ahead|behind[@STEP], "
            "COMPONENT:process=restart|away|crash-loop[@STEP] or COMPONENT:APISERVER=travel|switch[@STEP]"
        )
    component, subject, kind, at = match["component"], match["subject"], match["kind"], int(match["at"] or 1)
    if kind in _ACTIONS:
        return AtFailpoint(component, subject, _ACTIONS[kind], at)
    if kind in _VIEWS:
        return OfWatch(component, subject, _VIEWS[kind], at)
    if kind in _LOSSES:
        server, method, of = [*subject.split(".", 2), "", ""][:3]
        if not method:
            raise CaseError(f"{text!r}: expected COMPONENT:SERVER.METHOD[.KIND]={kind}[@NUMBER]")
        if _LOSSES[kind] is Loss.CONFLICT and not of:
            raise CaseError(
                f"{text!r}: a conflict is about objects of a kind: COMPONENT:SERVER.METHOD.KIND={kind}"
            )
        return OfCall(component, server, method, of, _LOSSES[kind], at)
    if kind in _PARTITIONS:
        if not _SERVER.fullmatch(subject):
            raise CaseError(f"{text!r}: {subject!r} is no server; a process calls apiserver, etcd or cloud")
        return OfNetwork(component, subject, _PARTITIONS[kind], at)
    if kind in _JUMPS and subject == CLOCK:
        return OfClock(component, _JUMPS[kind], at)
    if kind in _ABSENCES and subject == PROCESS:
        return OfProcess(component, _ABSENCES[kind], at)
    if kind in _MOVES:
        return ToServer(component, subject, _MOVES[kind], at)
    names = ", ".join([*_ACTIONS, *_VIEWS, *_LOSSES, *_PARTITIONS, *_JUMPS, *_ABSENCES, *_MOVES])
    raise CaseError(f"{text!r}: {kind!r} is not one of {names}")
