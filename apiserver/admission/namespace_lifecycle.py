"""NamespaceLifecycle: no new objects in a namespace that is missing or terminating (kube-apiserver 1.36)."""

from __future__ import annotations

from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Operation, Plugin
from nominee.machinery.api import errors
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.kinds import NAMESPACE, AnyKind

IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


class NamespaceLifecycle(Plugin):
    """Refuses creations in missing or terminating namespaces, and deletion of the immortal ones."""

    name = "NamespaceLifecycle"

    def handles(self, kind: AnyKind, operation: Operation, subresource: str) -> bool:
        # Updates need no check: an existing object has a namespace.
        return kind is NAMESPACE if operation == "DELETE" else operation == "CREATE" and kind.namespaced

    async def admit(self, request: AdmissionRequest, lookup: Lookup) -> None:
        if request.operation == "DELETE":
            if request.name in IMMORTAL:
                raise request.forbidden("this namespace may not be deleted")
            return
        name = request.namespace
        found = await lookup.find(NAMESPACE, "", name)
        if found is None:
            raise errors.not_found(NAMESPACE, name)
        if found.message.status.phase == "Terminating":
            raise request.forbidden(
                f"unable to create new content in namespace {name} because it is being terminated",
                [
                    Cause(
                        "NamespaceTerminating", f"namespace {name} is being terminated", "metadata.namespace"
                    )
                ],
            )
