"""Call hooks around plugins: a tuple per extension point, so that an empty one costs one test.

Point hooks belong to a framework and are called after each run of an extension point. Plugin hooks belong to
one attempt (`CycleState.hooks`) and are called after each plugin. Neither may change what it is shown.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Code, FilterPlugin, Status
from nominee.scheduler.framework.plugin_hooks import PluginHooks

# Of one run: the attempt's state, the status that came of it (None: success) and its duration in seconds.
PointHook = Callable[[CycleState, Status | None, float], None]
Verdicts = list[tuple[FilterPlugin, NDArray[np.bool_]]]
FAILED: Final = Status(Code.Error)

Run = TypeVar("Run", bound=Callable[..., Any])


# Of one framework, by extension point, which has the name of `PluginHooks`' field.
PointHooks = Mapping[str, tuple[PointHook, ...]]
NO_POINT_HOOKS: Final[PointHooks] = MappingProxyType({})


def hooks_of(*observers: object) -> PluginHooks:
    """Return the hooks of the observers, in order: their methods with the names of PluginHooks' fields."""
    names = [each.name for each in fields(PluginHooks)]
    return PluginHooks(
        **{
            name: tuple(getattr(observer, name) for observer in observers if hasattr(observer, name))
            for name in names
        }
    )


class Hooked(Protocol):
    """An object that runs extension points: a framework, or the shell's part of one."""

    @property
    def point_hooks(self) -> PointHooks: ...

    def monotonic(self) -> float: ...


def observed(point: str) -> Callable[[Run], Run]:
    """Call the point's hooks after each run of the decorated method; a run that raises counts as an Error."""

    def decorate(run: Run) -> Run:
        @functools.wraps(run)
        def observed_run(runner: Hooked, state: CycleState, *args: Any) -> Any:
            hooks = runner.point_hooks.get(point)
            if not hooks:
                return run(runner, state, *args)
            status: Status | None = FAILED
            began = runner.monotonic()
            try:
                answer = run(runner, state, *args)
                status = None if answer is None else status_of(answer)
                return answer
            finally:
                seconds = runner.monotonic() - began
                for hook in hooks:
                    hook(state, status, seconds)

        return cast("Run", observed_run)

    return decorate


def status_of(answer: object) -> Status | None:
    """Return the status in the answer of an extension point or a plugin; None without one: a success."""
    if not isinstance(answer, tuple):
        return answer if isinstance(answer, Status) else None
    for part in answer:
        if isinstance(part, Status):
            return part
    return None
