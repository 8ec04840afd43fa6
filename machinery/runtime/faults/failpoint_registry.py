"""The failpoints of one process, and their actions when they are armed.

An action is a chain of terms joined by `->`: `[P%][N*]ACTION[(ARGUMENT)]`. The first term that still has
counts left (`N*`) and whose dice fall right (`P%`) acts; ACTION is `off`, `crash` (SIGKILL to this process),
`error("text")` (FailpointError), `error(503)` (StatusError), `sleep(MILLISECONDS)` or `pause` (until the
point is armed again or disarmed).
"""

from __future__ import annotations

import os
import random
import re
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

import anyio

from nominee.machinery.api.errors import FailpointError as FailpointError
from nominee.machinery.api.errors import StatusError
from nominee.machinery.runtime.clock import Clock, SystemClock
from nominee.machinery.runtime.faults import action_chain
from nominee.machinery.runtime.faults.action_chain import ActionError as ActionError
from nominee.machinery.runtime.faults.action_chain import Argument, Chain
from nominee.machinery.runtime.faults.action_chain import Term as Term
from nominee.machinery.runtime.faults.waiters import Waiters

_NAME = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*(?:\.[a-z0-9]+(?:[-_][a-z0-9]+)*)*")
_ACTIONS: Mapping[str, Argument] = {
    "off": "none",
    "crash": "none",
    "error": "error",
    "sleep": "milliseconds",
    "pause": "none",
}


def parse(text: str) -> tuple[Term, ...]:
    """Return the terms of an action.

    Raises:
        ActionError: the text is not an action.
    """
    return action_chain.parse(text, _ACTIONS)


def parse_list(text: str) -> dict[str, str]:
    """`NAME=ACTION;NAME=ACTION` as names and actions; every action is checked."""
    found: dict[str, str] = {}
    for part in re.findall(r'(?:[^;"]|"(?:[^"\\]|\\.)*")+', text):
        name, separator, action = part.strip().partition("=")
        if not part.strip():
            continue
        if not separator or not _NAME.fullmatch(name.strip()):
            raise ActionError(f"{part.strip()!r}: expected NAME=ACTION")
        parse(action)
        found[name.strip()] = action.strip()
    return found


@dataclass(frozen=True, slots=True)
class PointState:
    """The state of one point: how often it was passed and acted, and how many tasks wait at it.

    `last` are the labels of the hit at which it acted last, such as its pod.
    """

    name: str
    action: str
    hits: int
    fired: int
    waiting: int
    last: Mapping[str, str]


class Point:
    """One named step of a process. Made by `Registry.declare`."""

    __slots__ = ("_action", "_last", "_registry", "_waiting", "chain", "fired", "hits", "name")

    def __init__(self, name: str, registry: Registry) -> None:
        self.name = name
        self.hits = 0
        self.fired = 0
        self._registry = registry
        self._action = ""
        self.chain: Chain | None = None
        """None unless the point is armed."""
        self._last: Mapping[str, str] = {}
        self._waiting = Waiters()

    async def hit(self, **context: object) -> None:
        """Pass this step; `context` names the object (`pod="ns/name"`) for the log and the list.

        Raises FailpointError or StatusError when armed to; may not return at all.
        """
        self.hits += 1
        if self.chain is not None:
            await self.act(self.chain, context)

    def state(self) -> PointState:
        return PointState(self.name, self._action, self.hits, self.fired, len(self._waiting), self._last)

    def set(self, action: str) -> None:
        """Arm with an action, or disarm with ""; tasks that are paused here continue."""
        self.chain = Chain(parse(action)) if action else None
        self._action = action
        self._waiting.release()

    async def act(self, chain: Chain, context: Mapping[str, object]) -> None:
        """Perform the action whose turn it is. Raises: as `hit`."""
        term = chain.choose(self._registry.rng)
        if term is not None and term.action != "off":
            await self._perform(term, context)

    async def _perform(self, term: Term, context: Mapping[str, object]) -> None:
        self.fired += 1
        self._last = {key: str(value) for key, value in context.items()}
        self._registry.on_fire(self.name, term, self._last)
        match term.action:
            case "crash":
                self._registry.crash()
                await anyio.sleep_forever()  # a simulated process ends at this await
            case "sleep":
                await self._registry.clock.sleep(int(term.argument) / 1000)
            case "pause":
                await self._waiting.wait()
            case "error" if term.argument and not term.quoted:
                code = int(term.argument)
                phrase = _PHRASES.get(code, "")
                reason = _REASONS.get(code, phrase.replace(" ", ""))
                raise StatusError(code, reason, f"failpoint {self.name}: {phrase or code}")
            case "error":
                raise FailpointError(term.argument or f"failpoint {self.name}")
            case _:
                pass


_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_REASONS = {
    422: "Invalid",
    410: "Expired",
    413: "RequestEntityTooLarge",
    500: "InternalError",
    504: "Timeout",
}


def _kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _say_nothing(name: str, term: Term, context: Mapping[str, str]) -> None:
    pass


class Registry:
    """All points of a process.

    A point may be armed before the module that declares it is imported (`arm_early`); it is armed when it is.
    """

    def __init__(
        self,
        *,
        rng: random.Random | None = None,
        clock: Clock | None = None,
        on_fire: Callable[[str, Term, Mapping[str, str]], None] = _say_nothing,
        crash: Callable[[], None] = _kill_self,
    ) -> None:
        self.rng = rng or random.Random(0)
        self.clock: Clock = clock or SystemClock()
        self.on_fire = on_fire
        self.crash = crash
        self._points: dict[str, Point] = {}
        self._early: dict[str, str] = {}

    def declare(self, name: str) -> Point:
        """Return a new point; a name is declared once."""
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r}: a failpoint is named like scheduler.bind.before")
        if name in self._points:
            raise ValueError(f"failpoint {name} is declared twice")
        point = self._points[name] = Point(name, self)
        if name in self._early:
            point.set(self._early.pop(name))
        return point

    def point(self, name: str) -> Point:
        """Return a declared point. Raises: KeyError."""
        return self._points[name]

    def arm(self, name: str, action: str) -> None:
        """Arm a declared point ("" and "off" disarm it); ActionError if there is no such point."""
        action = action.strip()
        parse(action or "off")
        point = self._points.get(name)
        if point is None:
            raise ActionError(self.no_such(name))
        point.set("" if action == "off" else action)

    def disarm_all(self) -> None:
        self._early.clear()
        for point in self._points.values():
            point.set("")

    def arm_early(self, actions: Mapping[str, str]) -> None:
        """Arm points that may not be declared yet."""
        for name, action in actions.items():
            if name in self._points:
                self.arm(name, action)
            else:
                parse(action)
                self._early[name] = action

    def no_such(self, name: str) -> str:
        """Return the message for a point that is not declared."""
        from difflib import get_close_matches  # for an error message only

        near = get_close_matches(name, self._points, n=3) or sorted(self._points)[:10]
        return f"no failpoint {name}; there are {', '.join(near) or 'none'}"

    def undeclared(self) -> tuple[str, ...]:
        """Return the points that were armed early and have not been declared since."""
        return tuple(self._early)

    def names(self) -> list[str]:
        """Return the names of the declared points, sorted."""
        return sorted(self._points)

    def states(self) -> list[PointState]:
        return [self._points[name].state() for name in self.names()]

    def get(self, name: str) -> PointState | None:
        point = self._points.get(name)
        return point.state() if point is not None else None
