"""Read the history of a cluster and check the invariants on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import anyio.to_thread

from nominee.lab.history.invariants.check import Check, Result
from nominee.lab.history.invariants.checking.evidence import Acknowledged, ComponentSettings, Evidence
from nominee.lab.history.invariants.table import OF_NOW
from nominee.lab.history.verification.evidence import collect
from nominee.lab.history.verification.reading import History
from nominee.lab.history.verification.settings import settings_of
from nominee.machinery.runtime.clock import Clock

ATTEMPTS: Final = 8
ATTEMPT_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The results of the invariants, and the part of the history on which they were checked."""

    results: tuple[Result, ...]
    history: History

    @property
    def holds(self) -> bool:
        """Return whether no invariant is violated."""
        return not any(result.violations for result in self.results)


async def verify(
    directory: Path,
    clock: Clock,
    *,
    names: Collection[str] | None = None,
    settings: ComponentSettings | None = None,
    acknowledged: Sequence[Acknowledged] | None = None,
    is_running: bool = True,
) -> Verification:
    """Check the invariants with these names (None: all) on the history of a cluster.

    `settings` None are those of the processes that run. The history of a cluster that does not run
    (`is_running`) ends with the newest time in it, and there is neither a queue nor a checkpoint to compare.

    Raises:
        HistoryUnavailable: etcd does not answer, and there is no history file.
        HistoryFileError: the history file is another file, or no write can be read from it or from etcd.
        OSError: the history file cannot be read.
    """
    if settings is None:
        settings = settings_of(directory, records_acknowledged=acknowledged is not None)
    found = await _verify(directory, clock, names, settings, acknowledged, is_running=is_running)

    async def again(names: Collection[str]) -> Sequence[Result]:
        return (await _verify(directory, clock, names, settings, acknowledged, is_running=True)).results

    return replace(found, results=await settled(found.results, again, clock)) if is_running else found


async def settled(
    results: Sequence[Result], again: Callable[[Collection[str]], Awaitable[Sequence[Result]]], clock: Clock
) -> tuple[Result, ...]:
    """Return results whose violations last: a status may not be written yet, or a pod is in a cycle.

    `again` checks the invariants with these names again.
    """
    for _ in range(ATTEMPTS - 1):
        doubtful = {each.invariant for each in results if each.violations} & OF_NOW
        if not doubtful:
            break
        await clock.sleep(ATTEMPT_SECONDS)
        newer = {result.invariant: result for result in await again(doubtful)}
        results = [newer.get(result.invariant, result) for result in results]
    return tuple(results)


async def _verify(
    directory: Path,
    clock: Clock,
    names: Collection[str] | None,
    settings: ComponentSettings,
    acknowledged: Sequence[Acknowledged] | None,
    *,
    is_running: bool,
) -> Verification:
    check, history = Check(settings, names), History()
    await history.read(directory, check.observe)
    if is_running:
        evidence = await anyio.to_thread.run_sync(collect, directory, clock.now())
    else:
        evidence = Evidence(now=history.fold.time)
    if acknowledged is not None:
        evidence = replace(evidence, acknowledged=tuple(acknowledged))
    return Verification(results=tuple(check.finish(evidence)), history=history)
