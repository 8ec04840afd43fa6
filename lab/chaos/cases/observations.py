"""The observations of a run that has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nominee.lab.scenario.result import ScenarioResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A run: its result, the failpoints that it passed, and the state of the cluster afterwards.

    `reached`: every perturbation took effect. `unsettled` is what had not come to rest. `is_clean`: another
    run can use the cluster.
    """

    result: ScenarioResult
    hits: Mapping[str, Mapping[str, int]]
    reached: bool
    unsettled: str
    is_clean: bool
    lasting: tuple[int, ...] = ()
    """Of an undisturbed run: the checks that still held in the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undisturbed:
    """Observations of the undisturbed run: how long each step took, and the checks that held to the end.

    Steps are numbered from 1; times are in seconds.
    """

    needed: Mapping[int, float] = field(default_factory=dict)
    lasting: Sequence[int] = ()
