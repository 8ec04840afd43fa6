"""Leases (kube-apiserver 1.36, pkg/apis/coordination/validation and pkg/registry/coordination/lease)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy
from nominee.apiserver.kinds.strategy import Environment
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import coordination

_NOT_POSITIVE = "must be greater than 0"


def _validate(obj: coordination.Lease) -> Iterator[Cause]:
    spec = obj.spec
    if spec.HasField("leaseDurationSeconds") and spec.leaseDurationSeconds <= 0:
        yield field.invalid("spec.leaseDurationSeconds", spec.leaseDurationSeconds, _NOT_POSITIVE)
    if spec.HasField("leaseTransitions") and spec.leaseTransitions < 0:
        problem = "must be greater than or equal to 0"
        yield field.invalid("spec.leaseTransitions", spec.leaseTransitions, problem)


class LeaseStrategy(SimpleStrategy[coordination.Lease]):
    """The main resource."""

    standard_finalizers = False

    def drop_disabled(
        self, new: coordination.Lease, old: coordination.Lease | None, env: Environment
    ) -> None:
        # CoordinatedLeaderElection (KEP-4355) is off by default, and not here.
        for name in ("strategy", "preferredHolder"):
            if old is None or not old.spec.HasField(name):
                new.spec.ClearField(name)


def _row(lease: coordination.Lease, now: float) -> Cells:
    return [lease.spec.holderIdentity]


RULES = KindRules(
    kind=kinds.LEASE,
    strategy=LeaseStrategy(kinds.LEASE, _validate),
    columns=Columns(_row, NAME, Column("Holder", "leasespec-coordination-v1#holderIdentity"), AGE),
    created_by_update=True,
    needs_resource_version=True,
)
