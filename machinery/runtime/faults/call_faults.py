"""Faults of the calls that this process makes: cut, delayed or dropped; watches made stale.

    call_faults.declare("etcd", ("Range", "Txn", "Watch"))       # in the module of the client

    if FAULTS.rules:                                             # an attribute test while no fault is set
        answer = await task_faults.current().call(Call("etcd", "Txn"), send, seconds_max)

A rule covers calls by server, method and kind; its action is a chain as a failpoint's. `cut`, `cut-response`,
`delay(MS)`, `drop-request` and `drop-response` are for all calls; `hold`, `merge` and `relist` for watches
only. Streams are registered while they are open (`stream`), since a rule that is set later may end them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, TypeVar

from nominee.machinery.api import kinds
from nominee.machinery.runtime.clock import Clock, SystemClock
from nominee.machinery.runtime.faults import action_chain
from nominee.machinery.runtime.faults.action_chain import ActionError, Argument, Chain, Term
from nominee.machinery.runtime.faults.waiters import Waiters

if TYPE_CHECKING:
    import grpc.aio

T = TypeVar("T")
Verdict = Literal["go", "merge", "relist"]
"""What a watch does with the next message, or instead of being opened."""

ALL = "*"
RULES_MAX = 100
ACTIONS: Mapping[str, Argument] = {
    "off": "none",
    "cut": "none",
    "cut-response": "none",
    "delay": "milliseconds",
    "drop-request": "none",
    "drop-response": "none",
    "hold": "none",
    "merge": "none",
    "relist": "none",
}
_OF_WATCHES = frozenset({"hold", "merge", "relist"})
_ENDING = frozenset({"cut", "cut-response", "relist"})
"""A rule that begins with one of these ends the open streams that it covers."""
_SPECIAL_CREATES = frozenset({"Bind", "Evict"})


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the server's process, the method, and the resource ("pods", "leases.coordination.k8s.io")."""

    to: str
    method: str
    resource: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """The calls that a rule covers. "*" is all; `Create` includes `Bind` and `Evict`."""

    to: str = ALL
    method: str = ALL
    kind: str = ALL
    resources: frozenset[str] = field(default=frozenset(), compare=False)

    def covers_server(self, process: str) -> bool:
        """Return whether calls to this process are covered; `apiserver` covers `apiserver-1`."""
        return self.to in (ALL, process, process.rpartition("-")[0])

    def covers(self, call: Call) -> bool:
        """Return whether the rule is for this call."""
        return (
            self.covers_server(call.to)
            and self._covers_method(call.method)
            and (self.kind == ALL or call.resource in self.resources)
        )

    def includes(self, other: Scope) -> bool:
        """Return whether every rule of the other scope is meant when this scope is switched off."""
        return (
            self.covers_server(other.to)
            and self._covers_method(other.method)
            and self.kind in (ALL, other.kind)
        )

    def _covers_method(self, method: str) -> bool:
        return self.method in (ALL, method) or (self.method == "Create" and method in _SPECIAL_CREATES)


@dataclass(frozen=True, slots=True)
class RuleState:
    """The state of one rule: how often it acted, and how many calls wait until it is removed."""

    to: str
    method: str
    kind: str
    action: str
    fired: int
    waiting: int


@dataclass(frozen=True, slots=True)
class CallCount:
    """The number of calls of one kind; of streams, how often one was opened or is open."""

    to: str
    method: str
    resource: str
    count: int


class Rule:
    """One rule of a registry."""

    __slots__ = ("_waiting", "action", "chain", "fired", "of_watches", "scope")

    def __init__(self, scope: Scope, action: str) -> None:
        self.scope = scope
        self.action = action
        self.chain = Chain(action_chain.parse(action, ACTIONS))
        self.fired = 0
        names = {term.action for term in self.chain.terms} - {"off"}
        self.of_watches = bool(names & _OF_WATCHES)
        if self.of_watches and names - _OF_WATCHES:
            raise ActionError(
                f"{action!r}: {', '.join(sorted(_OF_WATCHES))} are not combined with other actions"
            )
        self._waiting = Waiters()

    async def wait_removed(self) -> None:
        """Wait until this rule is removed or replaced."""
        await self._waiting.wait()

    def release(self) -> None:
        self._waiting.release()

    def state(self) -> RuleState:
        scope = self.scope
        return RuleState(scope.to, scope.method, scope.kind, self.action, self.fired, len(self._waiting))


@dataclass(eq=False, slots=True)
class Stream:
    """An open stream; `end` breaks it. `merging` is the rule for which `withheld` events wait."""

    call: Call
    end: Callable[[], object]
    merging: Rule | None = None
    withheld: int = 0
    released: bool = False


def _say_nothing(rule: Rule, call: Call) -> None:
    pass


class Faults:
    """The rules of a process, and its open streams. `rules` is empty unless a fault is set."""

    def __init__(
        self,
        *,
        rng: random.Random | None = None,
        clock: Clock | None = None,
        on_first: Callable[[Rule, Call], None] = _say_nothing,
    ) -> None:
        self.rng = rng or random.Random(0)
        self.clock: Clock = clock or SystemClock()
        self.on_first = on_first
        self.rules: tuple[Rule, ...] = ()
        self._servers: dict[str, frozenset[str]] = {}
        self._refused: set[tuple[str, str]] = set()
        self._streams: dict[Stream, None] = {}
        self._counts: Counter[Call] = Counter()

    def of_process(self, rng: random.Random, clock: Clock) -> Faults:
        """Return faults without rules for another process, with the same declarations."""
        made = Faults(rng=rng, clock=clock)
        made._servers, made._refused = self._servers, self._refused
        return made

    def declare(self, server: str, methods: Iterable[str], *, refused: Iterable[str] = ()) -> None:
        """Declare the methods that this process calls of a server, and actions that its client cannot do."""
        self._servers[server] = self._servers.get(server, frozenset()) | frozenset(methods)
        self._refused.update((server, action) for action in refused)

    def servers(self) -> dict[str, list[str]]:
        """Return the servers that this process calls, and the methods."""
        return {server: sorted(methods) for server, methods in sorted(self._servers.items())}

    # Rules.

    def put(self, action: str, to: str = ALL, method: str = ALL, kind: str = ALL) -> None:
        """Set the action of a scope; "off" removes all rules that the scope includes.

        Raises:
            ActionError: the action cannot be read, or no call is covered.
        """
        scope = self._scope(to, method, kind)
        action = action.strip()
        if action == "off":
            self._keep([rule for rule in self.rules if not scope.includes(rule.scope)])
            return
        rule = Rule(scope, action)
        if rule.of_watches and method not in (ALL, "Watch"):
            raise ActionError(f"{action!r} is for the method Watch, not {method}")
        covered = [server for server in self._servers if scope.covers_server(server)]
        for term in rule.chain.terms:
            if covered and all((server, term.action) in self._refused for server in covered):
                raise ActionError(f"{term.action} is not possible for watches of {', '.join(covered)}")
        others = [other for other in self.rules if other.scope != scope]
        if len(others) >= RULES_MAX:
            raise ActionError(f"at most {RULES_MAX} rules; remove some")
        self._keep([*others, rule])
        if rule.chain.terms[0].action in _ENDING:
            for stream in [stream for stream in self._streams if _covers(rule, stream.call)]:
                stream.end()

    def clear(self) -> None:
        """Remove all rules; calls that wait continue."""
        self._keep([])

    def states(self) -> list[RuleState]:
        return [rule.state() for rule in self.rules]

    def counts(self) -> list[CallCount]:
        """Return how many calls were made while there were rules, and the streams that are open."""
        found = Counter(self._counts)
        for stream in self._streams:
            found[stream.call] = max(found[stream.call], 1)
        counts = (CallCount(call.to, call.method, call.resource, count) for call, count in found.items())
        return sorted(counts, key=attrgetter("to", "method", "resource"))

    def _scope(self, to: str, method: str, kind: str) -> Scope:
        methods = self._methods_of(to)
        if method != ALL and method not in methods:
            raise ActionError(f"no method {method} of {to}; there are {_near(method, methods)}")
        if kind == ALL:
            return Scope(to, method)
        resources = frozenset(found.group_resource for found in kinds.by_name(kind.lower()))
        if not resources:
            plurals = {found.plural for found in kinds.KINDS}
            raise ActionError(f"no kind {kind}; there are {_near(kind.lower(), plurals)}")
        return Scope(to, method, next(iter(resources)) if len(resources) == 1 else kind.lower(), resources)

    def _methods_of(self, to: str) -> frozenset[str]:
        if to == ALL:
            return frozenset().union(*self._servers.values())
        base, _, index = to.rpartition("-")
        methods = self._servers.get(base if index.isdigit() else to)
        if methods is None:
            raise ActionError(f"this process does not call {to}; it calls {_near(to, self._servers)}")
        return methods

    def _keep(self, rules: list[Rule]) -> None:
        """Replace the rules; calls that wait for a removed rule continue."""
        removed = [rule for rule in self.rules if rule not in rules]
        self.rules = tuple(rules)
        for rule in removed:
            rule.release()
            for stream in [stream for stream in self._streams if stream.merging is rule]:
                stream.released = True
                stream.end()

    # Calls.

    async def call(self, call: Call, send: Callable[[float], Awaitable[T]], seconds_max: float) -> T:
        """Make a unary call with this deadline, subject to the rules; `send` gets the seconds that are left.

        Raises:
            grpc.aio.AioRpcError: UNAVAILABLE when cut, DEADLINE_EXCEEDED when dropped or delayed for longer.
        """
        self._counts[call] += 1
        chosen = self._choose(call, stream=False)
        if chosen is None:
            return await send(seconds_max)
        _, term = chosen
        match term.action:
            case "cut":
                raise _unavailable(call)
            case "delay":
                seconds = int(term.argument) / 1000
                await self.clock.sleep(min(seconds, seconds_max))
                if seconds >= seconds_max:
                    raise _deadline_exceeded(call)
                return await send(seconds_max - seconds)
            case "drop-request":
                await self.clock.sleep(seconds_max)
                raise _deadline_exceeded(call)
            case "cut-response":
                await _ignoring_errors(send(seconds_max))
                raise _unavailable(call)
            case _:
                started = self.clock.monotonic()
                await _ignoring_errors(send(seconds_max))
                await self.clock.sleep(seconds_max - (self.clock.monotonic() - started))
                raise _deadline_exceeded(call)

    # Streams.

    async def open(self, call: Call) -> Verdict:
        """Apply the rules to a stream that is about to be opened; `relist`: the revision is too old.

        Raises:
            grpc.aio.AioRpcError: UNAVAILABLE when cut; when dropped, once the rule is removed.
        """
        self._counts[call] += 1
        chosen = self._choose(call, stream=True)
        if chosen is not None:
            rule, term = chosen
            match term.action:
                case "cut" | "cut-response":
                    raise _unavailable(call)
                case "drop-request" | "drop-response":
                    await rule.wait_removed()
                    raise _unavailable(call)
                case "relist":
                    return "relist"
                case _:  # about messages
                    pass
        return "go"

    @contextmanager
    def stream(self, call: Call, end: Callable[[], object]) -> Iterator[Stream]:
        """Register an open stream."""
        stream = Stream(call, end)
        self._streams[stream] = None
        try:
            yield stream
        finally:
            self._streams.pop(stream, None)

    async def message(self, stream: Stream) -> Verdict:
        """Apply the rules to a message that was read; one that was held is subject to the next rule, too.

        Raises:
            grpc.aio.AioRpcError: as `open`.
        """
        while (chosen := self._choose(stream.call, stream=True)) is not None:
            rule, term = chosen
            match term.action:
                case "delay":
                    await self.clock.sleep(int(term.argument) / 1000)
                    return "go"
                case "hold":
                    await rule.wait_removed()
                case "merge":
                    stream.merging = rule
                    return "merge"
                case "relist":
                    return "relist"
                case "cut" | "cut-response":
                    raise _unavailable(stream.call)
                case _:
                    await rule.wait_removed()
                    raise _unavailable(stream.call)
        return "go"

    def _choose(self, call: Call, *, stream: bool) -> tuple[Rule, Term] | None:
        """Return the first rule that acts on the call or message, with its term."""
        for rule in self.rules:
            if (rule.of_watches and not stream) or not _covers(rule, call):
                continue
            term = rule.chain.choose(self.rng)
            if term is not None and term.action != "off":
                rule.fired += 1
                if rule.fired == 1:
                    self.on_first(rule, call)
                return rule, term
        return None


def _covers(rule: Rule, call: Call) -> bool:
    return rule.scope.covers(call) and (not rule.of_watches or call.method == "Watch")


def _near(name: str, names: Iterable[str]) -> str:
    from difflib import get_close_matches  # for an error message only

    names = sorted(names)
    return ", ".join(get_close_matches(name, names, n=3) or names[:20]) or "none"


# The functions below import gRPC, 110 ms that a process without clients would pay.


async def _ignoring_errors(sent: Awaitable[object]) -> None:
    """Await a call and drop its answer or error."""
    import grpc.aio

    from nominee.machinery.api.errors import StatusError

    try:
        await sent
    except (grpc.aio.AioRpcError, StatusError):
        return


def _unavailable(call: Call) -> grpc.aio.AioRpcError:
    import grpc

    return _error(grpc.StatusCode.UNAVAILABLE, f"fault: calls to {call.to} are cut")


def _deadline_exceeded(call: Call) -> grpc.aio.AioRpcError:
    import grpc

    return _error(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")


def _error(code: grpc.StatusCode, text: str) -> grpc.aio.AioRpcError:
    import grpc.aio

    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details=text)


FAULTS = Faults()
declare = FAULTS.declare
