"""A case of an exploration: the perturbations of one run of a scenario, and its text form. No I/O.

The identifier of a case is the list of its perturbations, joined by `+`:

    scheduler:scheduler.bind.after=crash        SIGKILL at the first hit of the failpoint
    kubelet-0:kubelet.status.before=error@3     the third hit fails
    scheduler:pods=stale@2                      the watch of pods is held while step 2 takes effect
    kubelet-0:apiserver-1=travel@2              restarts, and is served by a server that has not seen step 2
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

PERTURBATIONS_MAX = 8
ERROR_CODE = 503
DELAY_MILLISECONDS = 1500
FREEZE_SECONDS = 2.0
HOLD_SECONDS = 2.0
LAG_SECONDS = 3.0
_TEXT = re.compile(
    r"(?P<component>[a-z0-9]+(?:-[a-z0-9]+)*):(?P<subject>[a-z0-9._-]+)=(?P<what>[a-z]+)(?:@(?P<at>[1-9][0-9]*))?"
)


class CaseError(ValueError):
    """A text that is not the identifier of a case; the message names the expected form."""


class Action(Enum):
    """An action at a failpoint.

    PAUSE freezes the process (SIGSTOP) with one task at the failpoint, for FREEZE_SECONDS; DELAY lets this
    task alone wait.
    """

    CRASH = "crash"
    ERROR = "error"
    PAUSE = "pause"
    DELAY = "delay"


class View(Enum):
    """A change of the watch of one kind, for HOLD_SECONDS from a step on (Sieve, OSDI 2022).

    STALE: the process sees the changes later. MERGE: later, and of each object the last one only. RELIST: the
    watch is replaced by a new list, which does not show what was deleted and created again in between.
    """

    STALE = "stale"
    MERGE = "merge"
    RELIST = "relist"


class Move(Enum):
    """A change from one API server to another one that lags (Sieve's time travel).

    TRAVEL: the process is killed, and starts with what the other server has. SWITCH: its connections break,
    and it continues at the other server from what it has seen.
    """

    TRAVEL = "travel"
    SWITCH = "switch"


@dataclass(frozen=True, slots=True, order=True)
class AtFailpoint:
    """An action at the n-th hit of a failpoint of a process, counted from the beginning of the scenario."""

    component: str
    failpoint: str
    action: Action
    hit: int = 1

    def armed(self) -> str:
        """Return the failpoint's action (docs/failpoints.md)."""
        match self.action:
            case Action.CRASH:
                term = "1*crash"
            case Action.ERROR:
                term = f"1*error({ERROR_CODE})"
            case Action.PAUSE:
                term = "1*pause"
            case Action.DELAY:
                term = f"1*sleep({DELAY_MILLISECONDS})"
        return term if self.hit == 1 else f"{self.hit - 1}*off->{term}"

    def __str__(self) -> str:
        return _written(self.component, self.failpoint, self.action.value, self.hit)


@dataclass(frozen=True, slots=True, order=True)
class OfWatch:
    """A change of the watch of a process for one kind, from a step of the scenario on (1 is the first)."""

    component: str
    kind: str
    view: View
    step: int = 1

    def __str__(self) -> str:
        return _written(self.component, self.kind, self.view.value, self.step)


@dataclass(frozen=True, slots=True, order=True)
class ToServer:
    """A process that is served by an API server which lags, after another one served it.

    The server does not see changes from a step of the scenario on. The process moves when the scenario has
    been played; LAG_SECONDS later the server catches up.
    """

    component: str
    server: str
    move: Move
    step: int = 1

    def __str__(self) -> str:
        return _written(self.component, self.server, self.move.value, self.step)


Perturbation = AtFailpoint | OfWatch | ToServer


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
            if isinstance(each, AtFailpoint) and each.action is Action.CRASH
        )

    @property
    def disturbed(self) -> frozenset[str]:
        """Return the processes of the perturbations."""
        return frozenset(each.component for each in self.perturbations)

    def __str__(self) -> str:
        return "+".join(str(each) for each in self.perturbations)


def _written(component: str, subject: str, what: str, at: int) -> str:
    return f"{component}:{subject}={what}" + (f"@{at}" if at != 1 else "")


def _perturbation(text: str) -> Perturbation:
    match = _TEXT.fullmatch(text)
    if match is None:
        raise CaseError(
            f"{text!r}: expected COMPONENT:FAILPOINT=ACTION[@HIT], COMPONENT:KIND=VIEW[@STEP] or "
            "COMPONENT:APISERVER=travel|switch[@STEP]"
        )
    at = int(match["at"] or 1)
    actions, views = {each.value: each for each in Action}, {each.value: each for each in View}
    moves = {each.value: each for each in Move}
    if match["what"] in actions:
        return AtFailpoint(match["component"], match["subject"], actions[match["what"]], at)
    if match["what"] in views:
        return OfWatch(match["component"], match["subject"], views[match["what"]], at)
    if match["what"] in moves:
        return ToServer(match["component"], match["subject"], moves[match["what"]], at)
    raise CaseError(f"{text!r}: {match['what']!r} is not one of {', '.join([*actions, *views, *moves])}")
