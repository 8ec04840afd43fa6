"""The approving controller's shell: kubelets' client certificates, for users that may have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nominee.controllers.certificates.requests import (
    Subresource,
    approve,
    parse,
    permissions,
    waits_for_approval,
)
from nominee.controllers.shell.controller import Context, Controller
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import certificates
from nominee.machinery.runtime import failpoints

if TYPE_CHECKING:
    from nominee.pb.k8s.io.api.authorization.v1 import generated_pb2 as authorization

APPROVE_BEFORE = failpoints.declare(
    "controllers.certificates.approve.before", "a CertificateSigningRequest may be approved; it is not"
)
REFUSED_SECONDS: Final = 30.0
"""After which a request is reconciled again whose user is not allowed to have it approved."""


class Approver(Controller):
    """Approves requests of kubelets whose users may create certificatesigningrequests/(self)nodeclient."""

    name = "certificatesigningrequest-approving-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._requests = self.watch(kinds.CERTIFICATE_SIGNING_REQUEST)

    async def reconcile(self, key: ObjectKey) -> float | None:
        request = self._requests.get_by_key(key)
        if request is None or not waits_for_approval(request):
            return None
        try:
            _, names = parse(request)
        except ValueError as error:
            self.log.warning("the request cannot be parsed", request=key.name, error=str(error))
            return None
        asked = permissions(request.spec, names)
        for subresource in asked:
            if await self.client.may(_review(request.spec, subresource)):
                await APPROVE_BEFORE.hit(request=key.name)
                await self.client.update(approve(request, subresource), subresource="approval")
                return None
        if not asked:
            return None
        self.log.debug("the request's user may not have it approved", request=key.name, tried=asked)
        return REFUSED_SECONDS


def _review(
    spec: certificates.CertificateSigningRequestSpec, subresource: Subresource
) -> authorization.SubjectAccessReviewSpec:
    from nominee.pb.k8s.io.api.authorization.v1 import generated_pb2 as authorization

    review = authorization.SubjectAccessReviewSpec(user=spec.username, uid=spec.uid, groups=spec.groups)
    for name, values in spec.extra.items():
        review.extra[name].items.extend(values.items)
    attributes = review.resourceAttributes
    attributes.group, attributes.resource = "certificates.k8s.io", "certificatesigningrequests"
    attributes.verb, attributes.subresource, attributes.version = "create", subresource, "*"
    return review
