"""The observations of a run that has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nominee.lab.chaos.cases.trace import TracedWrite
from nominee.lab.scenario.result import ScenarioResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """The steps and calls of each process in an undisturbed run, also of those that did not run all the time.

    `hits`: by process, how often it passed each failpoint. `calls`: by process, how often it made each call,
    named `apiserver.Bind.pods`; watches are calls with the method Watch. `launches`: of a process that a step
    started and that did not run before, the number of the step (1 is the first). `kinds`: the plurals of the
    kinds of which an object changed.
    """

    hits: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    calls: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    launches: Mapping[str, int] = field(default_factory=dict)
    kinds: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A run: its result, and the state of the cluster afterwards.

    `reached`: every perturbation took effect. `unsettled` is what had not come to rest. `is_clean`: another
    run can use the cluster.
    """

    result: ScenarioResult
    reached: bool
    unsettled: str
    is_clean: bool
    activity: Activity = field(default_factory=Activity)
    """Of an undisturbed run."""
    trace: Sequence[TracedWrite] = ()
    """The writes from the first step until the cluster had come to rest."""
    passes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """How often each process that runs has passed each failpoint since it was started."""
    lasting: tuple[int, ...] = ()
    """Of an undisturbed run: the checks that still held in the end."""
    shapes: Mapping[str, int] = field(default_factory=dict)
    """Of an undisturbed run: the number of objects of each shape in the end."""
    facts: dict[str, dict[str, str]] = field(default_factory=dict)
    """Of an undisturbed run: what became of each object (lab/chaos/outcomes)."""
    work: Mapping[str, float] = field(default_factory=dict)
    """How many callbacks the processes of each component run in a second at rest, in a simulation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undisturbed:
    """Observations of the undisturbed run: how long each step took, and the checks that held to the end.

    Steps are numbered from 1; times are in seconds. `launches` as of Activity, `shapes` and
    `work` as of Ran; None is unknown. `is_asked`: the undisturbed run itself, before which nothing is known,
    is to find this out, since disturbed ones follow.
    """

    needed: Mapping[int, float] = field(default_factory=dict)
    lasting: Sequence[int] = ()
    launches: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, int] | None = None
    work: Mapping[str, float] | None = None
    is_asked: bool = True
