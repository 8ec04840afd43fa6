"""Binding a pod to a node: one write that sets the node, PodScheduled and clears the nomination.

Source: kube-apiserver 1.36, BindingREST; KEP-5278, "The API server clears NominatedNodeName".
"""

from __future__ import annotations

from typing import Any

from nominee.apiserver.kinds.strategy import Environment
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.registry.store import Preconditions, Store
from nominee.apiserver.validation import field
from nominee.machinery.api import errors
from nominee.machinery.api.errors import GroupResource, StatusError
from nominee.machinery.api.kinds import POD
from nominee.machinery.api.names import aggregate
from nominee.machinery.api.objects import copy_of, set_condition
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Version
from nominee.machinery.wire import presence

_RESOURCE = GroupResource("", "pods/binding")
_LABELS_SINCE = Version(1, 35)
"""PodTopologyLabelsAdmission copies labels of the Binding, too; on by default since this version."""


async def bind(
    store: Store, namespace: str, name: str, binding: core.Binding, env: Environment, *, dry_run: bool = False
) -> CachedObject:
    """Bind a pod to a node, and return the pod.

    Raises: StatusError 400, 404, 409 (bound, deleted or gated pod; preconditions), 500 (invalid target).
    """
    metadata = binding.metadata
    if metadata.name != name:
        raise errors.bad_request("name in URL does not match name in Binding object")
    _check_target(binding.target)
    node = binding.target.name

    async def mutate(current: CachedObject) -> Any:
        old = current.message
        problem = _refusal(old)
        if problem:
            raise errors.conflict(_RESOURCE, name, problem)
        new: core.Pod = copy_of(old)
        new.spec.nodeName = node
        if metadata.annotations:
            new.metadata.annotations.update(metadata.annotations)
        if metadata.labels and env.version >= _LABELS_SINCE:
            new.metadata.labels.update(metadata.labels)
        status = new.status
        scheduled = core.PodCondition(type="PodScheduled", status="True")
        presence.fill(scheduled)
        set_condition(status.conditions, scheduled, env.now)
        if status.nominatedNodeName and env.gates.enabled("ClearingNominatedNodeNameAfterBinding"):
            status.nominatedNodeName = ""
        return new

    preconditions = Preconditions(uid=metadata.uid, resource_version=metadata.resourceVersion)
    return await store.update(
        POD, namespace, name, mutate, preconditions=preconditions, dry_run=dry_run, filled=True
    )


def _check_target(target: core.ObjectReference) -> None:
    causes = []
    if target.kind not in ("", "Node"):
        causes.append(field.not_supported("target.kind", target.kind, ("Node", "<empty>")))
    if not target.name:
        causes.append(field.required("target.name"))
    if causes:
        # Upstream answers with a plain error here, which has neither reason nor details.
        raise StatusError(500, "", aggregate(map(str, causes)))


def _refusal(pod: core.Pod) -> str:
    """Return why this pod cannot be bound, or ""; checked in upstream's order."""
    name = pod.metadata.name
    if pod.metadata.HasField("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if pod.spec.nodeName:
        return f'pod {name} is already assigned to node "{pod.spec.nodeName}"'
    if pod.spec.schedulingGates:
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""
