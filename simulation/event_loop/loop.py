"""An asyncio event loop whose time is virtual: when no callback is ready, it jumps to the next timer.

Callbacks run in the order in which they became ready, timers of the same moment in the order in which they
were set. Sockets, threads, signals and child processes do not exist: their methods raise NotImplementedError,
as asyncio.AbstractEventLoop defines them.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import inspect
import itertools
import os
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextvars import Context, copy_context
from types import CoroutineType
from typing import Final, TypeGuard, TypeVar, TypeVarTuple, Unpack

from nominee.machinery.runtime.runtime import RUNTIME
from nominee.simulation.event_loop.watchdog import limit_in_fork
from nominee.simulation.owner import Owner, OwnerState
from nominee.simulation.runtime import SimulatedRuntime, current_owner, owner_of

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

STANDSTILL_CALLBACKS_MAX: Final = 200_000
"""Callbacks at one moment; beyond it, tasks wait for each other without any time passing."""


FINISH_SECONDS_MAX: Final = 60.0
FINISH_CALLBACKS_MAX: Final = 200_000
_STEPS_BETWEEN_LOOKS: Final = 64


class SimulationError(Exception):
    """The simulation cannot go on; the text says why."""


class SimulatedTask(asyncio.Task[T]):
    """A task whose hash is its number, so that sets of tasks have the same order in each run."""

    def __init__(
        self,
        coroutine: Coroutine[object, object, T] | Generator[asyncio.Future[object] | None, None, T],
        *,
        loop: SimulatedLoop,
        name: str | None,
        context: Context | None,
    ) -> None:
        self._number = loop.next_number()
        self.owner: Owner | None = None
        super().__init__(coroutine, loop=loop, name=name or f"task-{self._number}", context=context)

    def __hash__(self) -> int:
        return self._number

    def __repr__(self) -> str:
        # anyio writes it into every cancellation; asyncio's own names the coroutine and its frame.
        return f"<{self.get_name()}>"


class SimulatedHandle(asyncio.TimerHandle):
    """A callback that is ready, or that waits for its time.

    asyncio's own asks the loop for its debug mode each time it is made.
    """

    __slots__ = ()

    def __init__(
        self, when: float, callback: Callable[..., object], args: tuple[object, ...], context: Context
    ) -> None:
        self._when = when
        self._callback: Callable[..., object] | None = callback
        self._args = args
        self._context = context
        self._cancelled = False
        self._repr = self._source_traceback = None

    def cancel(self) -> None:
        self._cancelled = True
        self._callback = None
        self._args = ()


def _close_what_never_began(task: asyncio.Task[object]) -> None:
    """Close the coroutine of a task whose first step never ran, and the one that anyio's task would await.

    Otherwise each is reported as never awaited: a task that is cancelled then ends before it awaits anything.
    """
    coroutine = task.get_coro()
    if not _never_began(coroutine):
        return
    for argument in list(inspect.getcoroutinelocals(coroutine).values()):
        for inner in (argument, *gc.get_referents(argument)):
            if _never_began(inner):
                inner.close()


def _never_began(value: object) -> TypeGuard[CoroutineType[object, object, object]]:
    return inspect.iscoroutine(value) and inspect.getcoroutinestate(value) == inspect.CORO_CREATED


class SimulatedLoop(asyncio.AbstractEventLoop):
    """The event loop of one simulation."""

    def __init__(self) -> None:
        self._now = 0.0
        self._ready: deque[SimulatedHandle] = deque()
        self._timers: list[tuple[float, int, SimulatedHandle]] = []
        self._held: dict[Owner, list[SimulatedHandle]] = {}
        """What became ready for processes that are frozen or dead."""
        self._numbers = 0
        self._running = False
        self._stopping = False
        self._closed = False
        self.interrupts: deque[Callable[[], object]] = deque()
        """Handlers of signals that arrived: they are called between two callbacks."""
        self.callbacks = 0
        """How many callbacks have run."""
        self.problems: list[str] = []
        """What asyncio reported: exceptions that no task retrieved."""
        self._endless = ""
        """The callback that was ended, as it took too long."""

    def next_number(self) -> int:
        """Return a number that no task or timer of this loop has had."""
        self._numbers += 1
        return self._numbers

    # Time and callbacks.

    def time(self) -> float:
        return self._now

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        context = copy_context() if context is None else context
        handle = SimulatedHandle(self._now, callback, args, context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        # A cancelled timer is dropped when its time comes.
        handle = SimulatedHandle(when, callback, args, copy_context() if context is None else context)
        self._numbers += 1
        heapq.heappush(self._timers, (when, self._numbers, handle))
        return handle

    # Tasks and futures.

    def create_future(self) -> asyncio.Future[object]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Coroutine[object, object, T] | Generator[asyncio.Future[object] | None, None, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        task = SimulatedTask(coro, loop=self, name=name, context=context)
        task.owner = current_owner() if context is None else owner_of(context)
        return task

    def get_task_factory(self) -> None:
        """Return None: `create_task` makes the tasks."""

    def tasks_of(self, owner: Owner) -> list[asyncio.Task[object]]:
        """Return the unfinished tasks of a process, in the order of their creation."""
        return self.tasks_by_owner().get(owner, [])

    def tasks_by_owner(self) -> dict[Owner | None, list[asyncio.Task[object]]]:
        """Return the unfinished tasks of each process, in the order of their creation."""
        found = dict[Owner | None, list[asyncio.Task[object]]]()
        for task in sorted(asyncio.all_tasks(self), key=hash):
            if isinstance(task, SimulatedTask):
                found.setdefault(task.owner, []).append(task)
        return found

    # Running.

    def run_until_complete(self, future: Coroutine[object, object, T]) -> T:  # type: ignore[override]
        """Run a coroutine to its end, and with it everything else.

        Raises:
            SimulationError: nothing can happen any more, no time passes, or a callback was ended.
            KeyboardInterrupt: a handler in `interrupts` raised it.
        """
        task = self.create_task(future)
        asyncio.events._set_running_loop(self)
        self._running = True
        try:
            while not task.done():
                self._step()
        finally:
            self._running = False
            asyncio.events._set_running_loop(None)
        return task.result()

    def _step(self) -> None:
        """Run the callbacks that are ready; without any, move to the next timer first."""
        while self.interrupts:
            self.interrupts.popleft()()
        ready, timers = self._ready, self._timers
        if not ready:
            self._advance()
        now = self._now
        while timers and timers[0][0] <= now:
            ready.append(heapq.heappop(timers)[2])
        started = self.callbacks
        running = OwnerState.RUNNING
        for _ in range(len(ready)):
            handle = ready.popleft()
            callback = handle._callback
            if callback is None:
                continue
            context = handle._context
            runtime = context.get(RUNTIME)
            if isinstance(runtime, SimulatedRuntime):
                if runtime.owner.state is not running:
                    self._held.setdefault(runtime.owner, []).append(handle)
                    continue
                runtime.owner.callbacks += 1
            self.callbacks += 1
            try:
                context.run(callback, *handle._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001  # as asyncio does
                self.call_exception_handler(
                    {"message": f"Exception in callback {callback!r}", "exception": error}
                )
        if self._endless:
            raise SimulationError(self._endless)
        self._standstill += self.callbacks - started
        if self._standstill > STANDSTILL_CALLBACKS_MAX:
            raise SimulationError(
                f"{self._standstill} callbacks ran at {self._now:.6f} s without time passing"
            )

    _standstill = 0

    def on_endless(self) -> None:
        """End the simulation after the callback that runs: it was ended, since it took too long."""
        owner = current_owner()
        name = "the network" if owner is None else owner.name
        # No calls: those that the timer meets differ from run to run.
        self._endless = f"a callback of {name} at {self._now:.6f} s does not end"

    def _advance(self) -> None:
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not timers:
            raise SimulationError("all tasks wait, and no timer is set")
        self._now = max(self._now, timers[0][0])
        self._standstill = 0

    def finish(self, owners: Iterable[Owner]) -> None:
        """Cancel all tasks of processes, dead ones too, and let them end, within a limit.

        The caller has made sure that none of it has an effect.

        Raises:
            KeyboardInterrupt: it was raised meanwhile; the tasks have ended nevertheless.
        """
        for owner in owners:
            self.resume(owner)
        self._standstill, self._endless = 0, ""
        asyncio.events._set_running_loop(self)
        interrupted: KeyboardInterrupt | None = None
        deadline, last = self._now + FINISH_SECONDS_MAX, self.callbacks + FINISH_CALLBACKS_MAX
        cancelled: set[asyncio.Task[object]] = set()
        left: list[asyncio.Task[object]] = []
        try:
            for step in itertools.count():
                while left and left[-1].done():
                    left.pop()
                # Tasks that are cancelled may start others, and wait for them.
                if not left or step % _STEPS_BETWEEN_LOOKS == 0:
                    left = self._cancel_all(cancelled)
                if not left:
                    break
                if not self._ready and (not self._timers or self._timers[0][0] > deadline):
                    break
                if self.callbacks > last:
                    break
                try:
                    self._step()
                except KeyboardInterrupt as error:
                    interrupted = error
                except SimulationError:
                    break
        finally:
            asyncio.events._set_running_loop(None)
            for task in asyncio.all_tasks(self):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
        if interrupted is not None:
            raise interrupted

    def _cancel_all(self, cancelled: set[asyncio.Task[object]]) -> list[asyncio.Task[object]]:
        """Cancel the tasks that are not in `cancelled`, and add them; return all that have not ended."""
        left = sorted((task for task in asyncio.all_tasks(self) if not task.done()), key=hash)
        for task in left:
            if task not in cancelled:
                _close_what_never_began(task)
                task.cancel()
        cancelled.update(left)
        return left

    def resume(self, owner: Owner) -> None:
        """Let a frozen process go on with the callbacks that became ready meanwhile."""
        owner.state = OwnerState.RUNNING
        owner.resumed_at = self._now
        self._ready.extend(self._held.pop(owner, ()))

    def fork(self) -> int:
        """Fork the process within a callback; return 0 in the child, which goes on as this process would.

        The process must have one thread.
        """
        child = os.fork()
        if child == 0:
            # asyncio takes a loop for that of the process in which it began to run.
            asyncio.events._set_running_loop(self)
            limit_in_fork()
        return child

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Drop all callbacks; tasks that have not finished stay where they are."""
        self._closed = True
        self._ready.clear()
        self._timers.clear()

    async def shutdown_asyncgens(self) -> None:
        """Do nothing: the generators' owners close them."""

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, object]) -> None:
        error = context.get("exception")
        self.problems.append(f"{context.get('message')}: {error!r}")

    def default_exception_handler(self, context: dict[str, object]) -> None:
        self.call_exception_handler(context)
