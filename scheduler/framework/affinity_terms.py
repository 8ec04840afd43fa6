"""Parse pod affinity and anti-affinity terms, once for all pods that have the same ones.

Source: kube-scheduler 1.36, framework types (AffinityTerm, PodInfo).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from nominee.machinery.api import names
from nominee.machinery.api.pb import core, meta
from nominee.machinery.api.selectors import LabelSelector, Operator, SelectorError

SHARED_MAX: Final = 16_384  # parsed terms that are kept for the next pod with the same ones
_EQUAL: Final = frozenset({Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS})


class AffinityTerm:
    """The pods that a term selects and their topology; equal terms are mostly one object."""

    __slots__ = ("_equalities", "namespace_selector", "namespaces", "selector", "topology_key")

    def __init__(
        self,
        namespaces: frozenset[str],
        namespace_selector: LabelSelector,
        selector: LabelSelector,
        topology_key: str,
    ) -> None:
        self.namespaces = namespaces
        self.namespace_selector = namespace_selector
        self.selector = selector
        self.topology_key = topology_key
        simple = all(r.operator in _EQUAL and len(r.values) == 1 for r in selector.requirements)
        # The usual selector, which requires certain values, has a fast path.
        self._equalities = (
            tuple((r.key, r.values[0]) for r in selector.requirements)
            if simple and not selector.selects_nothing
            else None
        )

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Return whether the label selector matches; the namespace does not count."""
        if self._equalities is None:
            return self.selector.matches(labels)
        for key, value in self._equalities:  # noqa: SIM110  # all() takes three times as long
            if labels.get(key) != value:
                return False
        return True

    @property
    def one_label(self) -> tuple[str, str] | None:
        """Return a label that every selected pod has, with its value; None if no label is certain."""
        return self._equalities[0] if self._equalities else None

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Return whether the term selects a pod with these labels in that namespace."""
        if namespace in self.namespaces or self.namespace_selector.matches(namespace_labels):
            return self.selects(labels)
        return False


@dataclass(frozen=True, slots=True, eq=False)
class PodTerms:
    """All of a pod's terms; preferred ones with their weights. A list that cannot be parsed is empty."""

    required: tuple[AffinityTerm, ...] = ()
    required_anti: tuple[AffinityTerm, ...] = ()
    preferred: tuple[tuple[int, AffinityTerm], ...] = ()
    preferred_anti: tuple[tuple[int, AffinityTerm], ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def error(self) -> str:
        """Return the error of the terms that could not be parsed, or ""."""
        return names.aggregate(list(self.errors)) if self.errors else ""


def pod_terms(pod: core.Pod) -> PodTerms | None:
    """Return the terms of a pod; None when it has neither pod affinity nor pod anti-affinity."""
    if not pod.spec.HasField("affinity"):
        return None
    affinity = pod.spec.affinity
    if not affinity.HasField("podAffinity") and not affinity.HasField("podAntiAffinity"):
        return None
    return _parse_shared(
        pod.metadata.namespace,
        affinity.podAffinity.SerializeToString(deterministic=True),
        affinity.podAntiAffinity.SerializeToString(deterministic=True),
    )


@lru_cache(maxsize=SHARED_MAX)
def _parse_shared(namespace: str, affinity: bytes, anti_affinity: bytes) -> PodTerms:
    near, far = core.PodAffinity.FromString(affinity), core.PodAntiAffinity.FromString(anti_affinity)
    errors: list[str] = []

    def required(field: str, terms: Iterable[core.PodAffinityTerm]) -> tuple[AffinityTerm, ...]:
        try:
            return tuple(_term(namespace, term) for term in terms)
        except SelectorError as error:
            errors.append(f"{field}: {error}")
            return ()

    def preferred(
        field: str, terms: Iterable[core.WeightedPodAffinityTerm]
    ) -> tuple[tuple[int, AffinityTerm], ...]:
        try:
            return tuple((each.weight, _term(namespace, each.podAffinityTerm)) for each in terms)
        except SelectorError as error:
            errors.append(f"{field}: {error}")
            return ()

    return PodTerms(
        required("requiredAffinityTerms", near.requiredDuringSchedulingIgnoredDuringExecution),
        required("requiredAntiAffinityTerms", far.requiredDuringSchedulingIgnoredDuringExecution),
        preferred("preferredAffinityTerms", near.preferredDuringSchedulingIgnoredDuringExecution),
        preferred("preferredAntiAffinityTerms", far.preferredDuringSchedulingIgnoredDuringExecution),
        tuple(errors),
    )


def _term(namespace: str, term: core.PodAffinityTerm) -> AffinityTerm:
    """Parse a term; without namespaces and namespace selector it applies to the pod's own namespace."""
    own = not term.namespaces and not term.HasField("namespaceSelector")
    return _shared_term(
        frozenset((namespace,) if own else term.namespaces),
        _bytes(term, "namespaceSelector"),
        _bytes(term, "labelSelector"),
        term.topologyKey,
    )


def _bytes(term: core.PodAffinityTerm, field: str) -> bytes | None:
    if not term.HasField(field):
        return None
    selector: meta.LabelSelector = getattr(term, field)
    return selector.SerializeToString(deterministic=True)


@lru_cache(maxsize=SHARED_MAX)
def _shared_term(
    namespaces: frozenset[str], namespace_selector: bytes | None, selector: bytes | None, topology_key: str
) -> AffinityTerm:
    return AffinityTerm(namespaces, _selector(namespace_selector), _selector(selector), topology_key)


def _selector(data: bytes | None) -> LabelSelector:
    return LabelSelector.from_message(None if data is None else meta.LabelSelector.FromString(data))
