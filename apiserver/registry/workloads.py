"""The strategies of DaemonSets and EndpointSlices, which change what they store (1.36)."""

from __future__ import annotations

from typing import Any

from apiserver.registry.ruled import Ruled, TemplateRuled
from apiserver.registry.strategy import Environment
from apiserver.validation import daemon_sets
from machinery.api import kinds
from machinery.api.selectors import parse_int64

_GENERATION = "deprecated.daemonset.template.generation"


class DaemonSetStrategy(TemplateRuled):
    """The template's generation is an annotation in apps/v1."""

    def prepare_for_create(self, new: Any, env: Environment) -> None:
        super().prepare_for_create(new, env)
        given = new.metadata.annotations.get(_GENERATION, "")
        number = parse_int64(given) or 0
        new.metadata.annotations[_GENERATION] = str(max(number, 1))

    def prepare_for_update(self, new: Any, old: Any, env: Environment) -> None:
        super().prepare_for_update(new, old, env)
        before = old.metadata.annotations.get(_GENERATION, "1")
        number = parse_int64(before) or 1
        if new.spec.template != old.spec.template:
            number += 1
        new.metadata.annotations[_GENERATION] = str(number)


class EndpointSliceStrategy(Ruled):
    """Without a spec: what counts are the endpoints and ports, and the labels."""

    def prepare_for_create(self, new: Any, env: Environment) -> None:
        super().prepare_for_create(new, env)
        new.metadata.generation = 1

    def prepare_for_update(self, new: Any, old: Any, env: Environment) -> None:
        super().prepare_for_update(new, old, env)
        same = all(getattr(new, name) == getattr(old, name) for name in ("endpoints", "ports"))
        if not same or new.metadata.labels != old.metadata.labels:
            new.metadata.generation = old.metadata.generation + 1


DAEMON_SET = DaemonSetStrategy(
    kinds.DAEMON_SET,
    daemon_sets.daemon_set,
    daemon_sets.change,
    status=daemon_sets.status,
)
