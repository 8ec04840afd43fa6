"""The strategy of workloads: kinds with a template of pods in `spec.template`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar, cast

from google.protobuf.message import Message

from nominee.apiserver.kinds.strategy import Environment, Strategy
from nominee.apiserver.validation.pods import options as pod_options
from nominee.apiserver.validation.pods.options import PodOptions
from nominee.apiserver.validation.pods.warnings import Workload, workload_warnings
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.kinds import Kind

M = TypeVar("M", bound=Message)


class TemplateStrategy(Strategy[M]):
    """Validation by one function of (new, old, options of the template); `old` is None on create."""

    counts_generation = True

    def __init__(
        self,
        kind: Kind[M],
        check: Callable[[M, M | None, PodOptions], Iterable[Cause]],
        subresources: Mapping[str, Strategy[M]],
    ) -> None:
        super().__init__(kind, subresources)
        self._check = check

    def validate(self, new: M, env: Environment) -> list[Cause]:
        """Check metadata and the whole object."""
        return [*self.validate_metadata(new), *self._check(new, None, pod_options.of(env.gates))]

    def validate_update(self, new: M, old: M, env: Environment) -> list[Cause]:
        """Check the change of metadata and the whole object."""
        options = pod_options.of(env.gates, cast("Workload", old).spec.template.spec)
        return [*super().validate_update(new, old, env), *self._check(new, old, options)]

    def warnings(self, new: M, old: M | None) -> Sequence[str]:
        """Return warnings about the name and the template."""
        return workload_warnings(cast("Workload", new), cast("Workload | None", old))
