"""A strategy made of functions, for kinds whose rules are validation alone.

A kind's rules are a row in `apiserver.registry.strategies`: what makes its object invalid, what may not
change, what its status must be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.registry.strategy import Environment, StatusStrategy, Strategy
from apiserver.validation import metadata, names, pod_options
from apiserver.validation.pod_options import PodOptions
from machinery.api.errors import Cause
from machinery.api.kinds import Kind

Check = Callable[[Any], list[Cause]]
Compare = Callable[[Any, Any], list[Cause]]


def _nothing(_: Any) -> list[Cause]:
    return []


def _no_change(_new: Any, _old: Any) -> list[Cause]:
    return []


class Ruled(Strategy):
    """`check` is of the whole object on every write, `change` and `status` of (new, old)."""

    def __init__(
        self,
        kind: Kind[Any],
        check: Check = _nothing,
        change: Compare = _no_change,
        *,
        status: Compare = _no_change,
        name_rule: Callable[[str], names.Problems] = names.dns_subdomain,
        counts_generation: bool = False,
        checks_updates: bool = True,
        orphans_dependents: bool = False,
    ) -> None:
        subresources = {"status": RuledStatus(kind, status)} if "status" in kind.subresources else {}
        super().__init__(kind, subresources)
        self.counts_generation = counts_generation
        self.orphans_dependents = orphans_dependents
        self._check = check
        self._change = change
        self._name_rule = name_rule
        self._checks_updates = checks_updates

    def name_rule(self, name: str) -> names.Problems:
        return self._name_rule(name)

    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return self.validate_metadata(new) + self._check(new)

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        errors = metadata.object_meta_update(new.metadata, old.metadata) + self._change(new, old)
        return errors + self._check(new) if self._checks_updates else errors


class TemplateRuled(Ruled):
    """Of a kind that makes pods from `spec.template`: `check` is given the options of the pods' spec too."""

    def __init__(
        self,
        kind: Kind[Any],
        check: Callable[[Any, PodOptions], list[Cause]],
        change: Compare = _no_change,
        *,
        status: Compare = _no_change,
        orphans_dependents: bool = False,
    ) -> None:
        super().__init__(
            kind,
            change=change,
            status=status,
            counts_generation=True,
            orphans_dependents=orphans_dependents,
        )
        self._check_template = check

    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return self.validate_metadata(new) + self._check_template(new, pod_options.of(env.gates))

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        options = pod_options.of(env.gates, old.spec.template.spec)
        errors = metadata.object_meta_update(new.metadata, old.metadata) + self._change(new, old)
        return errors + self._check_template(new, options)


class RuledStatus(StatusStrategy):
    def __init__(self, kind: Kind[Any], change: Compare) -> None:
        super().__init__(kind)
        self._change = change

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return metadata.object_meta_update(new.metadata, old.metadata) + self._change(new, old)
