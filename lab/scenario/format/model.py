"""A scenario as data: the cluster, the steps, and the expectations over the whole run.

`reading.read_file` makes it from YAML; nothing here does I/O. Texts may contain `${NAME}`, the value of a
variable that an earlier step saved; `fields/substitution.py` replaces them before a step runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nominee.lab.scenario.acting.base import Action
from nominee.lab.scenario.fields.options import (
    AcceptedFinding,
    ClusterOptions,
    InvariantException,
    JsonObject,
)
from nominee.lab.scenario.measures.base import NamedMeasure
from nominee.lab.scenario.observing.base import Condition
from nominee.lab.scenario.steps.expect import Mode

API_VERSION = "scenario.nominee.dev/v1alpha1"
KIND = "Scenario"
TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step.

    `verb` is its key in the file; `save` maps variables to JSON paths of the object that the step found.
    Steps of the same `origin` are copies for the variants, and performed at the same time.
    """

    action: Action
    verb: str
    line: int
    origin: int | None = None
    name: str = ""
    save: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_check(self) -> bool:
        """Return whether the step is an expectation."""
        return self.action.is_check


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """An expectation over the whole run: NEVER or ALWAYS."""

    mode: Mode
    condition: Condition
    name: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A whole scenario; `file` and `document` (the JSON that was read) are for reports.

    `steps_may_fail`: a step that is refused, or does not end in time, is passed over, unless it is a check.
    `checks_may_fail`: a check, too.
    `left_out`: conditions that another program in a component's place cannot answer (replacing.py).
    """

    name: str
    title: str = ""
    section: str = ""
    file: str = ""
    timeout_seconds: float = TIMEOUT_SECONDS
    steps_may_fail: bool = False
    checks_may_fail: bool = False
    cluster: ClusterOptions = field(default_factory=ClusterOptions)
    steps: tuple[Step, ...] = ()
    background: tuple[Background, ...] = ()
    measures: tuple[NamedMeasure, ...] = ()
    except_invariants: tuple[InvariantException, ...] = ()
    accepted_findings: tuple[AcceptedFinding, ...] = ()
    left_out: tuple[str, ...] = ()
    document: JsonObject = field(default_factory=dict, repr=False, compare=False)
