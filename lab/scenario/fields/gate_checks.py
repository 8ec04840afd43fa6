"""Find the fields of a scenario that set a feature gate which a component does not have, or cannot set so."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from nominee.lab.scenario.fields import names
from nominee.lab.scenario.fields.options import ClusterOptions, ComponentOptions
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.localcluster.components import BY_NAME, Component
from nominee.machinery.features import gates as features

_FIELD: Final = "featureGates"
Found = Iterator[tuple[FieldPath, str]]
"""Fields, below the cluster or the step, with what is wrong. Unknown gates and versions are left out."""


def is_versioned(process: str) -> bool:
    """Return whether a component or process takes an emulated version and gates; so does an unknown one."""
    component = _component(process)
    return component is None or component.versioned


def of_cluster(cluster: ClusterOptions, programs: Collection[str]) -> Found:
    """Yield the mistakes in the gates of a cluster, in which `programs` are not Nominee's."""
    absent = {*cluster.without, *programs}
    present = [name for name, each in BY_NAME.items() if each.versioned and name not in absent]
    for gate, on in cluster.feature_gates.items():
        readers = _readers(gate)
        if readers.isdisjoint(present) and readers:
            text = f"no component of this cluster has this gate; it is for {', '.join(sorted(readers))}"
            yield (_FIELD, gate), text
        elif not readers and gate in features.gates():
            for message in _refused("", cluster.emulated_version, {gate: on}).values():
                yield (_FIELD, gate), message
    for name in dict.fromkeys((*present, *cluster.components)):
        component = _component(name)
        if component is not None and component.name in present:
            yield from _of_process(cluster, component, name)


def _of_process(cluster: ClusterOptions, component: Component, process: str) -> Found:
    fields = _fields(cluster, component, process)
    own = ("components", process, _FIELD)
    for gate in fields[own]:
        if message := _not_read(component, gate):
            yield (*own, gate), message
    refused = _refused(component.name, _version(cluster, component, process), _merged(fields))
    for gate, message in refused.items():
        yield _set_by(fields, gate) or own, message


def of_step(cluster: ClusterOptions, process: str, options: ComponentOptions) -> Found:
    """Yield the mistakes in the options of a step that starts a process, but not those of its cluster."""
    component = _component(process)
    if component is None or not component.versioned:
        return
    for gate in options.feature_gates:
        if message := _not_read(component, gate):
            yield (_FIELD, gate), message
    version = _version(cluster, component, process)
    gates = _merged(_fields(cluster, component, process))
    before = _refused(component.name, version, gates)
    after = _refused(component.name, options.emulated_version or version, {**gates, **options.feature_gates})
    for gate, message in after.items():
        if gate in options.feature_gates or gate not in before:
            rest = (_FIELD,) if options.feature_gates else ("emulatedVersion",)
            yield _set_by({(_FIELD,): options.feature_gates}, gate) or rest, message


def _component(process: str) -> Component | None:
    return BY_NAME.get(process) or BY_NAME.get(process.rpartition("-")[0])


def _readers(gate: str) -> frozenset[str]:
    """Return the components that a gate has an effect on; none for AllAlpha and AllBeta."""
    found = features.aliases().get(gate, gate)
    return frozenset(name for name in BY_NAME if found in features.affecting(name))


def _not_read(component: Component, gate: str) -> str:
    """Return why a gate has no effect on a component, or ""; a gate without readers is upstream's."""
    readers = _readers(gate)
    if not readers or component.name in readers:
        return ""
    return f"{component.name} does not have this gate; it is for {', '.join(sorted(readers))}"


def _fields(
    cluster: ClusterOptions, component: Component, process: str
) -> Mapping[FieldPath, Mapping[str, bool]]:
    """Return the fields that set gates of a process, and the gates; later ones override earlier ones."""
    return {
        (_FIELD,): cluster.shared_gates(component.name),
        ("components", component.name, _FIELD): cluster.component(component.name).feature_gates,
        ("components", process, _FIELD): cluster.component(process).feature_gates,
    }


def _version(cluster: ClusterOptions, component: Component, process: str) -> str:
    own, base = cluster.component(process), cluster.component(component.name)
    return own.emulated_version or base.emulated_version or cluster.emulated_version


def _merged(fields: Mapping[FieldPath, Mapping[str, bool]]) -> dict[str, bool]:
    return {gate: on for gates in fields.values() for gate, on in gates.items()}


def _refused(component: str, version: str, gates: Mapping[str, bool]) -> dict[str, str]:
    """Return why a component refuses gates, by gate."""
    at = f" at version {version}" if version else ""
    try:
        emulated = names.version(version)
        known = names.gate_names()
        features.Gates(component, emulated, {gate: on for gate, on in gates.items() if gate in known})
    except names.NameProblem:
        return {}
    except features.GateError as error:
        return {
            gate: f"{component}{at}: {text}" if component else text for gate, text in error.by_gate.items()
        }
    return {}


def _set_by(fields: Mapping[FieldPath, Mapping[str, bool]], gate: str) -> FieldPath | None:
    """Return the last field that sets a gate, or one that it needs; None if it is on by default."""
    known = features.gates().get(gate)
    for name in (gate, *(known.needs if known is not None else ())):
        for path, gates in reversed(list(fields.items())):
            if name in gates:
                return (*path, name)
    return None
