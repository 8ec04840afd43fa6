"""The perturbations of a run: each has a text form, and a sentence for a person. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

ERROR_CODE = 503
DELAY_MILLISECONDS = 1500
FREEZE_SECONDS = 2.0
INTERFERENCE_SECONDS = 0.2
HOLD_SECONDS = 2.0
HOLD_OF_ETCD_SECONDS = 4.0
"""For an API server: longer than the 3 s for which a list waits for its watch cache."""
SILENCE_SECONDS = 45.0
"""Until pings find a connection that is half open (client-go: every 30 s, with 15 s for the answer)."""
CUT_SECONDS = 5.0
"""Longer than the first back-offs of clients, and shorter than what makes a node silent."""
CALLS_IN_A_ROW = 6
"""Of one method and kind; a caller that tries 10 times, as most do, succeeds in the end."""
CRASHES = 5
"""Of a process that is killed again and again: the supervisor's pauses, from 0.2 s on, are 6.2 s together."""
LAG_SECONDS = 3.0
JUMP_SECONDS = 61.5
"""Not a round number: stories wait for whole minutes, and a time would be the same again by chance."""
AWAY_SECONDS = 65.0
"""Longer than the time after which a silent node is Unknown (50 s and a look) and a leader's lease (15 s)."""


class Action(Enum):
    """An action at a failpoint.

    PAUSE freezes the process (SIGSTOP) with one task at the failpoint, for FREEZE_SECONDS; DELAY lets this
    task alone wait. While it waits, RECREATE lets another client delete the object that the task is at work
    on, a pod or the object of a write, and create it again; TOUCH lets it change the object and
    take the change back; REMOVE lets it delete the object for good, a pod without grace.
    """

    CRASH = "crash"
    ERROR = "error"
    PAUSE = "pause"
    DELAY = "delay"
    RECREATE = "recreate"
    TOUCH = "touch"
    REMOVE = "remove"


BY_ANOTHER = frozenset({Action.RECREATE, Action.TOUCH, Action.REMOVE})
"""Another client carries these out, on the object that the task is at work on."""


class View(Enum):
    """A change of the watch of one kind, for `hold_seconds` from a step on (Sieve, OSDI 2022).

    STALE: the process sees the changes later. MERGE: later, and of each object the last one only. RELIST: the
    process sees nothing, then the revision is too old for its watch: the new list does not show what came and
    went in between. RECONNECT: the process sees nothing, then its connection breaks, and the watch continues
    from the old revision. SILENT: the same, but for SILENCE_SECONDS: periodic work comes meanwhile.
    """

    STALE = "stale"
    MERGE = "merge"
    RELIST = "relist"
    RECONNECT = "reconnect"
    SILENT = "silent"


class Loss(Enum):
    """A fault of one call, or of several in a row.

    LOSE_REQUEST: it is not carried out, and fails at once. LOSE_RESPONSE: it is carried out, and fails at
    once. LOSE_REQUESTS and LOSE_RESPONSES: the same for CALLS_IN_A_ROW calls, so that repetitions fail, too.
    HANG: it is not carried out, and fails at its deadline. SLOW: it is carried out DELAY_MILLISECONDS later.
    CONFLICT: the same, and meanwhile another client changes objects of the kind, and changes them back.
    """

    LOSE_REQUEST = "lose-request"
    LOSE_RESPONSE = "lose-response"
    LOSE_REQUESTS = "lose-requests"
    LOSE_RESPONSES = "lose-responses"
    HANG = "hang"
    SLOW = "slow"
    CONFLICT = "conflict"


class Jump(Enum):
    """A jump of the wall clock of a process by JUMP_SECONDS, from a step to the end of the scenario."""

    AHEAD = "ahead"
    BEHIND = "behind"


class Partition(Enum):
    """A process reaches no server of a component for CUT_SECONDS, from a step of the scenario on.

    CUT: calls fail at once, and watches break.
    """

    CUT = "cut"


class Absence(Enum):
    """A process is killed before a step of the scenario.

    RESTART: it is started at once, before the step. AWAY: AWAY_SECONDS later. CRASH_LOOP: its supervisor
    starts it, and it is killed again when it is ready, CRASHES times in all. Only for an API server does the
    scenario wait.
    """

    RESTART = "restart"
    AWAY = "away"
    CRASH_LOOP = "crash-loop"


class Move(Enum):
    """A change from one API server to another one that lags (Sieve's time travel).

    TRAVEL: the process is killed, and starts with what the other server has. SWITCH: its connections break,
    and it continues at the other server from what it has seen.
    """

    TRAVEL = "travel"
    SWITCH = "switch"


@dataclass(frozen=True, slots=True, order=True)
class AtFailpoint:
    """An action at the n-th hit of a failpoint of a process, counted from the beginning of the scenario.

    Of a process that a step starts, from this start on.
    """

    component: str
    failpoint: str
    action: Action
    hit: int = 1

    @property
    def place(self) -> tuple[str, str, int]:
        """Return the place of which two perturbations are no pair."""
        return self.component, self.failpoint, self.hit

    @property
    def failpoint_action(self) -> str:
        """Return the failpoint's action (docs/failpoints.md)."""
        match self.action:
            case Action.CRASH:
                term = "1*crash"
            case Action.ERROR:
                term = f"1*error({ERROR_CODE})"
            case Action.PAUSE | Action.RECREATE | Action.TOUCH | Action.REMOVE:
                term = "1*pause"
            case Action.DELAY:
                term = f"1*sleep({DELAY_MILLISECONDS})"
        return _at(self.hit, term)

    def describe(self) -> str:
        """Return the perturbation as a sentence."""
        match self.action:
            case Action.CRASH:
                does = "is killed"
            case Action.ERROR:
                does = f"gets the error {ERROR_CODE}"
            case Action.PAUSE:
                does = f"is frozen for {FREEZE_SECONDS:g} s"
            case Action.DELAY:
                does = f"waits for {DELAY_MILLISECONDS / 1000:g} s, in one task,"
            case Action.RECREATE:
                does = "waits, and another client meanwhile replaces its object,"
            case Action.TOUCH:
                does = "waits, and another client meanwhile changes its object,"
            case Action.REMOVE:
                does = "waits, and another client meanwhile removes its object,"
        return f"{self.component} {does} at hit {self.hit} of {self.failpoint}"

    def __str__(self) -> str:
        return _identifier(self.component, self.failpoint, self.action.value, self.hit)


@dataclass(frozen=True, slots=True, order=True)
class OfWatch:
    """A change of the watch of a process for one kind, from a step of the scenario on (1 is the first)."""

    component: str
    kind: str
    view: View
    step: int = 1

    @property
    def place(self) -> tuple[str, str, int]:
        """Return the place of which two perturbations are no pair."""
        return self.component, self.kind, 0

    @property
    def hold_seconds(self) -> float:
        """Return how long the watch is withheld."""
        if self.view is View.SILENT:
            return SILENCE_SECONDS
        return HOLD_OF_ETCD_SECONDS if self.kind == ETCD else HOLD_SECONDS

    def describe(self) -> str:
        """Return the perturbation as a sentence."""
        seconds = f"{self.hold_seconds:g} s"
        match self.view:
            case View.STALE:
                does = f"sees changes of {self.kind} {seconds} later"
            case View.MERGE:
                does = f"sees changes of {self.kind} {seconds} later, of each object the last one"
            case View.RELIST:
                does = f"sees no change of {self.kind} for {seconds}, and then must list again"
            case View.RECONNECT | View.SILENT:
                does = (
                    f"sees no change of {self.kind} for {seconds}, then its connection breaks, and "
                    "it continues from the old revision"
                )
        return f"{self.component} {does}, from step {self.step} on"

    def __str__(self) -> str:
        return _identifier(self.component, self.kind, self.view.value, self.step)


@dataclass(frozen=True, slots=True, order=True)
class OfCall:
    """A fault of the n-th call of a process with one method; of objects of one kind, unless `kind` is ""."""

    component: str
    server: str
    method: str
    kind: str
    loss: Loss
    number: int = 1

    @property
    def place(self) -> tuple[str, str, int]:
        """Return the place of which two perturbations are no pair."""
        return self.component, self.call, 0

    @property
    def call(self) -> str:
        """Return the calls as one word."""
        return ".".join(part for part in (self.server, self.method, self.kind) if part)

    @property
    def fault_action(self) -> str:
        """Return the fault's action (docs/faults.md)."""
        match self.loss:
            case Loss.LOSE_REQUEST:
                term = "1*cut"
            case Loss.LOSE_RESPONSE:
                term = "1*cut-response"
            case Loss.LOSE_REQUESTS:
                term = f"{CALLS_IN_A_ROW}*cut"
            case Loss.LOSE_RESPONSES:
                term = f"{CALLS_IN_A_ROW}*cut-response"
            case Loss.HANG:
                term = "1*drop-request"
            case Loss.SLOW | Loss.CONFLICT:
                term = f"1*delay({DELAY_MILLISECONDS})"
        return _at(self.number, term)

    def describe(self) -> str:
        """Return the perturbation as a sentence."""
        of = f" of {self.kind}" if self.kind else ""
        match self.loss:
            case Loss.LOSE_REQUEST:
                does = "fails, and is not carried out"
            case Loss.LOSE_RESPONSE:
                does = "is carried out, and its answer is lost"
            case Loss.LOSE_REQUESTS:
                does = f"and the {CALLS_IN_A_ROW - 1} after it fail, and are not carried out"
            case Loss.LOSE_RESPONSES:
                does = f"and the {CALLS_IN_A_ROW - 1} after it are carried out, and their answers are lost"
            case Loss.HANG:
                does = "is not carried out, and has no answer until its deadline"
            case Loss.SLOW:
                does = f"is {DELAY_MILLISECONDS / 1000:g} s late"
            case Loss.CONFLICT:
                does = "is overtaken by another client, which changes all objects of the kind"
        return f"call {self.number} of {self.component} to {self.server}, {self.method}{of}, {does}"

    def __str__(self) -> str:
        return _identifier(self.component, self.call, self.loss.value, self.number)


@dataclass(frozen=True, slots=True, order=True)
class OfNetwork:
    """A process that does not reach `server` (apiserver, etcd, cloud), from a step of the scenario on."""

    component: str
    server: str
    partition: Partition
    step: int = 1

    @property
    def place(self) -> tuple[str, str, int]:
        """Return the place of which two perturbations are no pair."""
        return self.component, self.server, 0

    @property
    def hold_seconds(self) -> float:
        """Return how long the server is out of reach."""
        return CUT_SECONDS

    def describe(self) -> str:
        """Return the perturbation as a sentence."""
        return (
            f"{self.component} does not reach {self.server} for {CUT_SECONDS:g} s, from step {self.step} on: "
            "calls fail, and watches break"
        )

    def __str__(self) -> str:
        return _identifier(self.component, self.server, self.partition.value, self.step)


@dataclass(frozen=True, slots=True, order=True)
class OfClock:
    """A jump of the wall clock of a process, from a step of the scenario on."""

    component: str
    jump: Jump
    step: int = 1

    @property
    def place(self) -> tuple[str, str, int]:
        """Return the place of which two perturbations are no pair."""
        return self.component, CLOCK, 0

    @property
    def offset_seconds(self) -> float:
        """Return the offset from the cluster's clock."""
        return JUMP_SECONDS if self.jump is Jump.AHEAD else -JUMP_SECONDS

    def describe(self) -> str:
        """Return the perturbation as a sentence."""
        where = "ahead" if self.jump is Jump.AHEAD else "behind"
        return f"the clock of {self.component} is {JUMP_SECONDS:g} s {where}, from step {self.step} on"

    def __str__(self) -> str:
        return _identifier(self.component, CLOCK, self.jump.value, self.step)


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

    @property
    def place(self) -> tuple[str, str, int]:
        """Return the place of which two perturbations are no pair."""
        return self.component, self.server, 0

    def describe(self) -> str:
        """Return the perturbation as a sentence."""
        does = "is killed, and starts" if self.move is Move.TRAVEL else "loses its connections, and continues"
        return (
            f"after the scenario {self.component} {does} at {self.server}, which has seen nothing since step "
            f"{self.step}"
        )

    def __str__(self) -> str:
        return _identifier(self.component, self.server, self.move.value, self.step)


@dataclass(frozen=True, slots=True, order=True)
class OfProcess:
    """A process that is killed before a step of the scenario, and started again."""

    component: str
    absence: Absence
    step: int = 1

    @property
    def place(self) -> tuple[str, str, int]:
        """Return the place of which two perturbations are no pair."""
        return self.component, PROCESS, self.step

    def describe(self) -> str:
        """Return the perturbation as a sentence."""
        match self.absence:
            case Absence.RESTART:
                then = "started again at once"
            case Absence.AWAY:
                then = f"started again {AWAY_SECONDS:g} s later"
            case Absence.CRASH_LOOP:
                then = f"killed again each time it is ready, {CRASHES} times in all"
        return f"{self.component} is killed before step {self.step}, and {then}"

    def __str__(self) -> str:
        return _identifier(self.component, PROCESS, self.absence.value, self.step)


ETCD = "etcd"
"""The kind that stands for all keys of etcd, which the API server watches; it needs every revision."""
CLOCK, PROCESS = "clock", "process"
Subject = tuple[str, str, str]
Perturbation = AtFailpoint | OfWatch | OfCall | OfNetwork | OfClock | OfProcess | ToServer
FromStep = OfWatch | OfNetwork | OfClock | OfProcess | ToServer
"""Perturbations that begin with a step."""


def number_of(each: Perturbation) -> int:
    """Return the hit, the call or the step at which a perturbation begins."""
    match each:
        case AtFailpoint():
            return each.hit
        case OfCall():
            return each.number
        case _:
            return each.step


def kind_of(each: Perturbation) -> str:
    """Return the kind of disturbance: `crash`, `stale`, `hang`."""
    match each:
        case AtFailpoint():
            return each.action.value
        case OfWatch():
            return each.view.value
        case OfCall():
            return each.loss.value
        case OfNetwork():
            return each.partition.value
        case OfClock():
            return each.jump.value
        case OfProcess():
            return each.absence.value
        case ToServer():
            return each.move.value


def subject_of(each: Perturbation) -> Subject:
    """Return the component, its place (a failpoint, a call, a kind, a clock), and the kind of disturbance.

    These are the same for all processes of a component, and at all hits, calls and steps.
    """
    return each.component.partition("-")[0], each.place[1], kind_of(each)


def _at(number: int, term: str) -> str:
    return term if number == 1 else f"{number - 1}*off->{term}"


def _identifier(component: str, subject: str, kind: str, at: int) -> str:
    return f"{component}:{subject}={kind}" + (f"@{at}" if at != 1 else "")
