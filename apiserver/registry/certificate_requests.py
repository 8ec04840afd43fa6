"""How CertificateSigningRequests are made, approved and answered (kube-apiserver 1.36,
registry/certificates/certificates/strategy.go).

Approving and signing are for controllers and people: nothing here issues a certificate.
"""

from __future__ import annotations

from typing import Any

from apiserver.access.user import CURRENT
from apiserver.registry.strategy import Environment, Strategy, keep
from apiserver.validation import certificate_requests as rules
from apiserver.validation import metadata, names
from machinery.api.errors import Cause
from machinery.api.kinds import CERTIFICATE_SIGNING_REQUEST
from machinery.api.pb import meta

_VERDICTS = (rules.APPROVED, rules.DENIED)


class RequestStrategy(Strategy):
    """Its maker is who asks; it never changes but by its subresources."""

    def name_rule(self, name: str) -> names.Problems:
        return ()

    def prepare_for_create(self, new: Any, env: Environment) -> None:
        spec, user = new.spec, CURRENT.get()
        for name in ("username", "uid", "groups", "extra"):
            spec.ClearField(name)
        spec.username, spec.uid = user.name, user.uid
        spec.groups.extend(user.groups)
        for key, values in user.extra:
            spec.extra[key].items.extend(values)
        new.ClearField("status")

    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return self.validate_metadata(new) + rules.request(new)

    def prepare_for_update(self, new: Any, old: Any, env: Environment) -> None:
        keep(new, old, "spec")
        keep(new, old, "status")

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return metadata.object_meta_update(new.metadata, old.metadata) + rules.change(new, old)


class _Approval(RequestStrategy):
    """Conditions alone."""

    def prepare_for_update(self, new: Any, old: Any, env: Environment) -> None:
        keep(new, old, "spec")
        new.status.certificate = old.status.certificate
        _date(new, old, env.now)


class _Status(RequestStrategy):
    """All but the verdicts."""

    def prepare_for_update(self, new: Any, old: Any, env: Environment) -> None:
        keep(new, old, "spec")
        own = [row for row in new.status.conditions if row.type not in _VERDICTS]
        rows = [row for row in old.status.conditions if row.type in _VERDICTS] + own
        copies = [type(row).FromString(row.SerializeToString()) for row in rows]
        del new.status.conditions[:]
        new.status.conditions.extend(copies)
        _date(new, old, env.now)


def _date(new: Any, old: Any, now: meta.Time) -> None:
    """When each condition came, where its writer does not say."""
    before = {row.type: row for row in old.status.conditions}
    for row in new.status.conditions:
        if not row.lastUpdateTime.seconds:
            row.lastUpdateTime.CopyFrom(now)
        if not row.lastTransitionTime.seconds:
            known = before.get(row.type)
            same = known is not None and known.status == row.status and known.lastTransitionTime.seconds
            row.lastTransitionTime.CopyFrom(known.lastTransitionTime if same and known is not None else now)


STRATEGY = RequestStrategy(
    CERTIFICATE_SIGNING_REQUEST,
    {"status": _Status(CERTIFICATE_SIGNING_REQUEST), "approval": _Approval(CERTIFICATE_SIGNING_REQUEST)},
)
