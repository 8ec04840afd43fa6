"""A scenario as data: the cluster, the steps, and the expectations over the whole run.

`reading.read_file` makes it from YAML; nothing here does I/O. Texts may contain `${NAME}`, the value of a
variable that an earlier step saved; `substitution.py` replaces them before a step runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from nominee.lab.scenario.format.condition import Condition
from nominee.machinery.features.gates import no_effect
from nominee.machinery.wire.scalars import Json

API_VERSION = "scenario.nominee.dev/v1alpha1"
KIND = "Scenario"
TIMEOUT_SECONDS = 120.0
WAIT_SECONDS = 30.0
"""The limit of a wait or of `eventually` that names none."""

JsonObject = Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentOptions:
    """The options of a component; empty fields leave what the cluster says.

    `command` replaces the component by another program. `stopped` components are in the cluster and do not
    run until a step starts them.
    """

    emulated_version: str = ""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    failpoints: Mapping[str, str] = field(default_factory=dict)
    config: JsonObject | None = None
    command: tuple[str, ...] = ()
    replicas: int = 1
    stopped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """The cluster of a scenario. `restart`: the supervisor restarts a component that died."""

    emulated_version: str = ""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    nodes: int = 0
    kubelets: int = 1
    node_groups: tuple[JsonObject, ...] = ()
    components: Mapping[str, ComponentOptions] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    restart: bool = True
    insecure: bool = False

    def component(self, name: str) -> ComponentOptions:
        """Return the options of a component; the defaults if the scenario does not name it."""
        return self.components.get(name, ComponentOptions())

    def shared_gates(self, component: str) -> Mapping[str, bool]:
        """Return the gates for all components that one of them reads; only these are given to it."""
        return {name: on for name, on in self.feature_gates.items() if not no_effect(component, name)}

    @property
    def not_simulated(self) -> str:
        """Return why the cluster cannot be simulated, or ""."""
        programs = [name for name, own in self.components.items() if own.command]
        if programs:
            return f"{', '.join(programs)}: programs that are not Nominee's cannot be simulated"
        if "etcd" in self.without:
            return "a cluster without etcd cannot be simulated"
        if self.component("etcd").replicas > 1:
            return "several processes of etcd cannot be simulated"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOverrides:
    """Changes to a scenario's cluster by the caller of `run_scenario`: a cell of a skew matrix.

    Keys of `emulated_versions` and `feature_gates` are components; "" is for all.
    """

    emulated_versions: Mapping[str, str] = field(default_factory=dict)
    feature_gates: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    failpoints: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    arguments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def applied_to(self, cluster: ClusterOptions) -> ClusterOptions:
        """Return the cluster with these changes."""
        keys = {*self.emulated_versions, *self.feature_gates, *self.failpoints, *self.arguments} - {""}
        components = dict(cluster.components)
        for key in sorted(keys):
            own = cluster.component(key)
            components[key] = replace(
                own,
                emulated_version=self.emulated_versions.get(key, own.emulated_version),
                feature_gates={**own.feature_gates, **self.feature_gates.get(key, {})},
                failpoints={**own.failpoints, **self.failpoints.get(key, {})},
                arguments=(*own.arguments, *self.arguments.get(key, ())),
            )
        return replace(
            cluster,
            emulated_version=self.emulated_versions.get("", cluster.emulated_version),
            feature_gates={**cluster.feature_gates, **self.feature_gates.get("", {})},
            components=components,
        )


class Mode(Enum):
    """The times at which the condition of an expectation must hold."""

    NOW = "now"
    EVENTUALLY = "eventually"
    ALWAYS = "always"
    NEVER = "never"


class Verb(Enum):
    """An operation of a step on a process."""

    START = "start"
    STOP = "stop"
    KILL = "kill"
    PAUSE = "pause"
    RESUME = "resume"
    RESTART = "restart"


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply:
    """Create objects, or merge them into those that exist, as `nominee apply` does.

    `rejected`: the request must fail with this text in its message.
    """

    manifests: tuple[JsonObject, ...]
    rejected: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """Patch objects; `type` is strategic, merge, json or apply, `selector` names several objects."""

    kind: str
    name: str = ""
    namespace: str = ""
    selector: str = ""
    subresource: str = ""
    type: str = "strategic"
    patch: Json
    field_manager: str = ""
    force: bool = False
    rejected: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete objects by name or selector; an object that does not exist is no error."""

    kind: str
    name: str = ""
    namespace: str = ""
    selector: str = ""
    grace_period_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Wait until a condition holds; it prepares the next step and does not count as a check."""

    condition: Condition
    seconds: float = WAIT_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """A check. `seconds` is the limit of EVENTUALLY and the duration of ALWAYS and NEVER."""

    mode: Mode
    condition: Condition
    seconds: float = WAIT_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """Start, stop, kill, pause, resume or restart a process, also with other options.

    `rejected`: a start or restart must fail with this text in its message.
    """

    verb: Verb
    component: str
    options: ComponentOptions = ComponentOptions()
    kill: bool = False
    rejected: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFailpoint:
    """Arm a failpoint of a process, or disarm it with `off`."""

    component: str
    name: str
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectFault:
    """Cut, delay or drop the calls of a component to others (docs/faults.md); `*` is all.

    `off` removes the faults that `to`, `method` and `kind` select.
    """

    component: str
    action: str
    to: str = "*"
    method: str = "*"
    kind: str = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftClock:
    """Shift the wall clock of a process by seconds, relative to the machine's."""

    component: str
    offset_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Make a node unschedulable, and evict its pods except those of DaemonSets, as kubectl drain does."""

    node: str
    seconds: float = WAIT_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordon:
    """Make a node unschedulable, or schedulable again."""

    node: str
    unschedulable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeGroup:
    """Create instances of a node group of the cloud and wait for their nodes, or delete all of them."""

    group: str
    increase: int = 0
    delete: bool = False
    wait: bool = True
    seconds: float = WAIT_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class DamageCheckpoint:
    """Damage the checkpoint file of a node whose kubelet does not run: `corrupt`, `truncate` or `delete`."""

    node: str
    how: str


Action = (
    Apply
    | Patch
    | Delete
    | Wait
    | Expect
    | Control
    | ArmFailpoint
    | InjectFault
    | ShiftClock
    | Drain
    | Cordon
    | ResizeGroup
    | DamageCheckpoint
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step.

    `verb` is its key in the file; `save` maps variables to JSON paths of the object that the step found.
    """

    action: Action
    verb: str
    line: int
    name: str = ""
    save: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_check(self) -> bool:
        """Return whether the step is an expectation."""
        return isinstance(self.action, Expect)


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """An expectation over the whole run: NEVER or ALWAYS."""

    mode: Mode
    condition: Condition
    name: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InvariantException:
    """An invariant that a scenario breaks on purpose, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A whole scenario; `file` and `document` (the JSON that was read) are for reports."""

    name: str
    title: str = ""
    section: str = ""
    file: str = ""
    timeout_seconds: float = TIMEOUT_SECONDS
    cluster: ClusterOptions = ClusterOptions()
    steps: tuple[Step, ...] = ()
    background: tuple[Background, ...] = ()
    except_invariants: tuple[InvariantException, ...] = ()
    document: JsonObject = field(default_factory=dict, repr=False, compare=False)
