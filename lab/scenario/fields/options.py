"""The options of a scenario's cluster and of its components, and the invariants that it breaks on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nominee.machinery.features.gates import no_effect
from nominee.machinery.wire.values.scalars import Json

JsonObject = Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentOptions:
    """The options of a component; empty fields leave those of the cluster.

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
    """Changes to a scenario's cluster by a command, or by a case of an exploration.

    Keys of `emulated_versions` and `feature_gates` are components; "" is for all.
    """

    emulated_versions: Mapping[str, str] = field(default_factory=dict)
    feature_gates: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    failpoints: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def applied_to(self, cluster: ClusterOptions) -> ClusterOptions:
        """Return the cluster with these changes."""
        keys = {*self.emulated_versions, *self.feature_gates, *self.failpoints} - {""}
        components = dict(cluster.components)
        for key in sorted(keys):
            own = cluster.component(key)
            components[key] = replace(
                own,
                emulated_version=self.emulated_versions.get(key, own.emulated_version),
                feature_gates={**own.feature_gates, **self.feature_gates.get(key, {})},
                failpoints={**own.failpoints, **self.failpoints.get(key, {})},
            )
        return replace(
            cluster,
            emulated_version=self.emulated_versions.get("", cluster.emulated_version),
            feature_gates={**cluster.feature_gates, **self.feature_gates.get("", {})},
            components=components,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InvariantException:
    """An invariant that a scenario breaks on purpose, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedFinding:
    """A finding of explorations that is known behaviour of Kubernetes.

    `case` is a pattern, as of a shell, for one perturbation of the case; `observation` is a part of the
    finding's text, with `*` for any text. `link` is where the behaviour is described.
    """

    case: str
    observation: str
    reason: str
    link: str
