"""Random clusters with pod affinity, and what InterPodAffinity means, said as plainly as possible: the model.

The model looks at every pair of pods and nodes; it knows no counts, groups, columns or increments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from nominee.machinery.api.pb import core
from nominee.machinery.api.selectors import LabelSelector
from nominee.machinery.wire import codec

KEYS = ("zone", "host", "rack")
NAMESPACES: dict[str, dict[str, str]] = {
    "default": {"team": "a"},
    "other": {"team": "b", "kind": "batch"},
    "bare": {},
}

_LABELS = st.fixed_dictionaries(
    {},
    optional={"app": st.sampled_from(("web", "db")), "tier": st.sampled_from(("front", "back"))},
)


def _expressions(keys: Sequence[str], values: Sequence[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.fixed_dictionaries(
            {
                "key": st.sampled_from(keys),
                "operator": st.sampled_from(("In", "NotIn")),
                "values": st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True),
            }
        ),
        st.fixed_dictionaries(
            {"key": st.sampled_from(keys), "operator": st.sampled_from(("Exists", "DoesNotExist"))}
        ),
    )


_SELECTORS = st.one_of(
    st.fixed_dictionaries({"matchLabels": _LABELS}),
    st.fixed_dictionaries(
        {
            "matchExpressions": st.lists(
                _expressions(("app", "tier"), ("web", "db", "front")), min_size=1, max_size=2
            )
        }
    ),
)
_NAMESPACE_SELECTORS = st.fixed_dictionaries(
    {"matchExpressions": st.lists(_expressions(("team", "kind"), ("a", "b", "batch")), max_size=1)}
)
_TERMS = st.fixed_dictionaries(
    {"topologyKey": st.sampled_from(KEYS)},
    optional={
        "labelSelector": _SELECTORS,
        "namespaces": st.lists(st.sampled_from(tuple(NAMESPACES)), max_size=2, unique=True),
        "namespaceSelector": _NAMESPACE_SELECTORS,
    },
)
_WEIGHTED = st.fixed_dictionaries({"weight": st.integers(1, 100), "podAffinityTerm": _TERMS})


@st.composite
def affinities(draw: st.DrawFn) -> dict[str, Any]:
    """Of a pod's spec; often with nothing in it."""
    found = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        if draw(st.booleans()):
            found[kind] = {
                "requiredDuringSchedulingIgnoredDuringExecution": draw(st.lists(_TERMS, max_size=2)),
                "preferredDuringSchedulingIgnoredDuringExecution": draw(st.lists(_WEIGHTED, max_size=2)),
            }
    return found


@st.composite
def pods(draw: st.DrawFn, name: str, node: str = "") -> core.Pod:
    spec: dict[str, Any] = {"containers": [{"name": "c"}], "affinity": draw(affinities())}
    if node:
        spec["nodeName"] = node
    metadata = {
        "name": name,
        "namespace": draw(st.sampled_from(tuple(NAMESPACES))),
        "uid": f"uid-{name}",
        "labels": draw(_LABELS),
    }
    return codec.from_json(core.Pod, {"metadata": metadata, "spec": spec})


@st.composite
def nodes(draw: st.DrawFn, name: str) -> core.Node:
    labels = {"host": name}
    if draw(st.integers(0, 4)):
        labels["zone"] = draw(st.sampled_from(("a", "b")))
    if draw(st.booleans()):
        labels["rack"] = draw(st.sampled_from(("r1", "r2", "r3")))
    if not draw(st.integers(0, 9)):
        labels = {}
    return codec.from_json(core.Node, {"metadata": {"name": name, "labels": labels}})


def namespaces() -> list[core.Namespace]:
    return [
        codec.from_json(core.Namespace, {"metadata": {"name": name, "labels": labels}})
        for name, labels in NAMESPACES.items()
    ]


@dataclass(frozen=True)
class Model:
    """`pods_on`: the pods of each node, by its name."""

    nodes: Mapping[str, core.Node]
    pods_on: Mapping[str, Sequence[core.Pod]]
    hard_weight: int = 1
    ignores_existing: bool = False
    selector_stays: bool = True  # the mistake of 1.34 and later with negative namespace selectors

    def _everywhere(self) -> Iterator[tuple[core.Node, core.Pod]]:
        for name, there in self.pods_on.items():
            if name in self.nodes:
                for pod in there:
                    yield self.nodes[name], pod

    def rejection(self, pod: core.Pod, node: core.Node) -> str | None:
        near = pod.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution
        wanted = [
            (home, other)
            for home, other in self._everywhere()
            if all(self._means(pod, term, other) for term in near)
        ]
        if near and not self._near(pod, node, near, wanted):
            return "node(s) didn't match pod affinity rules"
        for term in pod.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution:
            for home, other in self._everywhere():
                if self._means(pod, term, other) and _together(term.topologyKey, home, node):
                    return "node(s) didn't match pod anti-affinity rules"
        for home, other in self._everywhere():
            for term in other.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution:
                if _meant_by_placed(other, term, pod) and _together(term.topologyKey, home, node):
                    return "node(s) didn't satisfy existing pods anti-affinity rules"
        return None

    def _near(
        self,
        pod: core.Pod,
        node: core.Node,
        near: Sequence[core.PodAffinityTerm],
        wanted: list[tuple[core.Node, core.Pod]],
    ) -> bool:
        keys = [term.topologyKey for term in near]
        if not all(key in node.metadata.labels for key in keys):
            return False
        if all(any(_together(key, home, node) for home, _ in wanted) for key in keys):
            return True
        nowhere = not any(key in home.metadata.labels for home, _ in wanted for key in keys)
        return nowhere and all(self._means(pod, term, pod) for term in near)

    def score(self, pod: core.Pod, node: core.Node) -> int:
        """Before normalisation."""
        affinity = pod.spec.affinity
        soft_near = affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution
        soft_far = affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution
        own = [(w.weight, w.podAffinityTerm) for w in soft_near]
        own += [(-w.weight, w.podAffinityTerm) for w in soft_far]
        if self.ignores_existing and not own:
            return 0
        total = 0
        for home, other in self._everywhere():
            for weight, term in own:
                if self._means(pod, term, other) and _together(term.topologyKey, home, node):
                    total += weight
            for weight, term in self._terms_that_score(other):
                if _meant_by_placed(other, term, pod) and _together(term.topologyKey, home, node):
                    total += weight
        return total

    def _terms_that_score(self, other: core.Pod) -> Iterator[tuple[int, core.PodAffinityTerm]]:
        affinity = other.spec.affinity
        for term in affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution:
            yield self.hard_weight, term
        for each in affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution:
            yield each.weight, each.podAffinityTerm
        for each in affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution:
            yield -each.weight, each.podAffinityTerm

    def _means(self, owner: core.Pod, term: core.PodAffinityTerm, other: core.Pod) -> bool:
        """Whether a term of the pending pod means another pod."""
        if not _selector(term, "labelSelector").matches(other.metadata.labels):
            return False
        where = other.metadata.namespace
        if where in _named(owner, term):
            return True
        selector = _selector(term, "namespaceSelector")
        if self.selector_stays and selector.matches({}):
            return True
        return selector.matches(NAMESPACES[where])


def _meant_by_placed(owner: core.Pod, term: core.PodAffinityTerm, pod: core.Pod) -> bool:
    """Whether a term of a pod on a node means the pending one."""
    where = pod.metadata.namespace
    named = where in _named(owner, term)
    if not named and not _selector(term, "namespaceSelector").matches(NAMESPACES[where]):
        return False
    return _selector(term, "labelSelector").matches(pod.metadata.labels)


def _named(owner: core.Pod, term: core.PodAffinityTerm) -> Sequence[str]:
    if not term.namespaces and not term.HasField("namespaceSelector"):
        return [owner.metadata.namespace]
    return term.namespaces


def _selector(term: core.PodAffinityTerm, field: str) -> LabelSelector:
    return LabelSelector.from_message(getattr(term, field) if term.HasField(field) else None)


def _together(key: str, a: core.Node, b: core.Node) -> bool:
    """Whether both nodes are in the same domain of the topology."""
    left, right = a.metadata.labels, b.metadata.labels
    return key in left and key in right and left[key] == right[key]
