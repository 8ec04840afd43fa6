"""The list of the verbs, in the order of the schema and of docs/scenarios.md."""

from __future__ import annotations

from nominee.lab.scenario.acting.base import Action
from nominee.lab.scenario.steps.expect import Expect
from nominee.lab.scenario.steps.faults.checkpoint import DamageCheckpoint
from nominee.lab.scenario.steps.faults.clock import ShiftClock
from nominee.lab.scenario.steps.faults.failpoint import ArmFailpoint
from nominee.lab.scenario.steps.faults.fault import InjectFault
from nominee.lab.scenario.steps.node_group import ResizeGroup
from nominee.lab.scenario.steps.objects.apply import Apply
from nominee.lab.scenario.steps.objects.cordon import Cordon, Uncordon
from nominee.lab.scenario.steps.objects.delete import Delete
from nominee.lab.scenario.steps.objects.drain import Drain
from nominee.lab.scenario.steps.objects.patch import Patch
from nominee.lab.scenario.steps.processes.pause import Pause, Resume
from nominee.lab.scenario.steps.processes.restart import Restart
from nominee.lab.scenario.steps.processes.start import Start
from nominee.lab.scenario.steps.processes.stop import Kill, Stop
from nominee.lab.scenario.steps.wait import Wait

_VERBS: tuple[type[Action], ...] = (
    Apply,
    Patch,
    Delete,
    Wait,
    Expect,
    Start,
    Stop,
    Kill,
    Pause,
    Resume,
    Restart,
    ArmFailpoint,
    InjectFault,
    ShiftClock,
    Drain,
    Cordon,
    Uncordon,
    ResizeGroup,
    DamageCheckpoint,
)
VERBS: dict[str, type[Action]] = {each.verb: each for each in _VERBS}
"""By the field of a step that has the action."""
