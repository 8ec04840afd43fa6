"""The resource claim controller: a key is a pod whose claims must be created, or a claim."""

from __future__ import annotations

from typing import Literal, NamedTuple

from nominee.controllers.devices import reservations, templates
from nominee.controllers.planned_events import PlannedEvent
from nominee.controllers.shell.controller import UNSEEN_SECONDS, Context, Worker
from nominee.machinery.api import kinds
from nominee.machinery.api.claim_templates import claim_from
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import (
    ObjectKey,
    is_controlled_by,
    key_of,
    resource_version_number,
    resource_version_of,
)
from nominee.machinery.api.pb import core, devices
from nominee.machinery.client.watches.live_objects import get_if_exists

Claim = devices.ResourceClaim


class Key(NamedTuple):
    """A pod or a claim."""

    what: Literal["pod", "claim"]
    key: ObjectKey

    def __str__(self) -> str:
        return f"{self.what}:{self.key}"


class ResourceClaimController(Worker[Key]):
    """Creates claims from templates for pods, and frees or deletes them when their pods have ended."""

    name = "resource-claim"
    component = "resource_claim"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.pods = context.informers.of(kinds.POD)
        self.pods.add_index("claims", templates.claims_on_node)
        self.claims = context.informers.of(kinds.RESOURCE_CLAIM)
        self.templates = context.informers.of(kinds.RESOURCE_CLAIM_TEMPLATE)
        self._created: dict[ObjectKey, Claim] = {}
        """Claims that the watch has not shown yet."""
        self.pods.on_change(self._pod_changed, deletions=False)
        self.pods.add_handler(on_delete=lambda pod, _stale: self._release(pod))
        self.claims.on_change(self._claim_changed, deletions=False)
        self.claims.add_handler(on_delete=lambda claim, _stale: self._claim_gone(claim))
        self.templates.add_handler(on_add=self._template_created)

    def _pod_changed(self, pod: core.Pod) -> None:
        if not pod.spec.resourceClaims and not pod.status.HasField("extendedResourceClaimStatus"):
            return
        if templates.is_done(pod):
            self._release(pod)
        elif templates.waits_for_claims(pod) or pod.spec.nodeName:
            self.queue.add(Key("pod", key_of(pod)))

    def _release(self, pod: core.Pod) -> None:
        for name in templates.claim_names(pod):
            self.queue.add(Key("claim", ObjectKey(pod.metadata.namespace, name)))
        for claim in self.claims.by_index("owner", pod.metadata.uid):
            self.queue.add(Key("claim", key_of(claim)))
        self._created = {key: each for key, each in self._created.items() if not is_controlled_by(each, pod)}

    def _claim_changed(self, claim: Claim) -> None:
        self._created.pop(key_of(claim), None)
        self.queue.add(Key("claim", key_of(claim)))
        for pod in self.pods.by_index("claims", str(key_of(claim))):
            if reservations.needs_reservation(pod, claim):
                self.queue.add(Key("pod", key_of(pod)))

    def _claim_gone(self, claim: Claim) -> None:
        """Queue the pod of a deleted claim: one that still needs it gets another."""
        self._created.pop(key_of(claim), None)
        name, _ = reservations.owning_pod(claim)
        if name:
            self.queue.add(Key("pod", ObjectKey(claim.metadata.namespace, name)))

    def _template_created(self, template: devices.ResourceClaimTemplate) -> None:
        for pod in self.pods.list(template.metadata.namespace):
            if templates.waits_for_claims(pod):
                self.queue.add(Key("pod", key_of(pod)))

    async def reconcile(self, key: Key) -> float | None:
        if key.what == "pod":
            await self._create_claims(key.key)
            return None
        return await self._reconcile_claim(key.key)

    # Pods

    async def _create_claims(self, key: ObjectKey) -> None:
        pod = self.pods.get(key.name, key.namespace)
        if pod is None or templates.is_done(pod) or pod.metadata.HasField("deletionTimestamp"):
            return
        named: dict[str, str] = {}
        in_status = {s.name: s.resourceClaimName for s in pod.status.resourceClaimStatuses}
        for reference in pod.spec.resourceClaims:
            if not reference.HasField("resourceClaimTemplateName"):
                continue
            found = self.claims.get(in_status.get(reference.name, ""), key.namespace)
            if found is not None:
                if not is_controlled_by(found, pod):
                    text = f"{key_of(found)} was not created for pod {key} (pod is not owner)"
                    self._record_failure(pod, reference.name, f"ResourceClaim {text}")
                continue
            claim = await self._create(pod, reference)
            if claim is not None:
                named[reference.name] = claim.metadata.name
        if named:
            patch = templates.statuses_patch(named)
            await self.client.patch(kinds.POD, key.name, key.namespace, patch, subresource="status")
        await self._reserve(pod)

    async def _create(self, pod: core.Pod, reference: core.PodResourceClaim) -> Claim | None:
        """Return the claim that was created before, or a new one; None when it cannot be created."""
        own = [*self.claims.by_index("owner", pod.metadata.uid), *self._unseen()]
        found = templates.created_for(pod, reference.name, own)
        if found is not None:
            return found
        name = reference.resourceClaimTemplateName
        template = self.templates.get(name, pod.metadata.namespace)
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{name}" not found'
            self._record_failure(pod, reference.name, f'resource claim template "{name}": {missing}')
            return None  # the pod is queued when the template is created
        try:
            created = await self.client.create(claim_from(template, pod, reference.name))
        except StatusError as error:
            self._record_failure(pod, reference.name, f"create ResourceClaim : {error.message}")
            raise
        current = self.pods.get(pod.metadata.name, pod.metadata.namespace)
        is_needed = current is not None and current.metadata.uid == pod.metadata.uid
        if is_needed and self.claims.get_by_key(key_of(created)) is None:  # the watch may have been faster
            self._created[key_of(created)] = created
        return created

    def _unseen(self) -> list[Claim]:
        """Return the created claims that are newer than the watch; forget the others.

        kube-controller-manager 1.36 keeps them in a MutationCache (claimCache), for a time.
        """
        seen = resource_version_number(self.claims.resource_version)
        self._created = {key: each for key, each in self._created.items() if resource_version_of(each) > seen}
        return list(self._created.values())

    def _record_failure(self, pod: core.Pod, reference: str, text: str) -> None:
        note = f"PodResourceClaim {reference}: {text}"
        self.record(pod, PlannedEvent("FailedResourceClaimCreation", note, "Warning"))

    async def _reserve(self, pod: core.Pod) -> None:
        """Reserve the claims of a pod that was bound without the scheduler."""
        for name in templates.claim_names(pod):
            claim = self.claims.get(name, pod.metadata.namespace)
            new = reservations.reserved_for(pod, claim) if claim is not None else None
            if new is not None:
                await self.client.update(new, subresource="status")

    # Claims

    async def _reconcile_claim(self, key: ObjectKey) -> float | None:
        claim = self.claims.get(key.name, key.namespace)
        if claim is None:
            return None
        live = [
            reference.uid for reference in claim.status.reservedFor if await self._is_live(claim, reference)
        ]
        is_unseen = any(
            each.uid in live and reservations.is_pod(each) and self.pods.get(each.name, key.namespace) is None
            for each in claim.status.reservedFor
        )
        name, _ = reservations.owning_pod(claim)
        owner = self.pods.get(name, key.namespace) if name else None
        plan = reservations.plan(
            claim, lambda reference: reference.uid in live, reservations.owner_is_done(claim, owner)
        )
        if plan.status is not None:
            claim = await self.client.update(plan.status, subresource="status")
        if plan.drops_finalizer:
            await self.drop_finalizer(claim, reservations.FINALIZER)
        if plan.deletes:
            await self.client.delete(kinds.RESOURCE_CLAIM, key.name, key.namespace)
        return UNSEEN_SECONDS if is_unseen else None

    async def _is_live(self, claim: Claim, reference: devices.ResourceClaimConsumerReference) -> bool:
        """Report whether a consumer lives; ask the API server for a pod that the informer does not have."""
        namespace = claim.metadata.namespace
        pod = self.pods.get(reference.name, namespace) if reservations.is_pod(reference) else None
        if pod is None and reservations.is_pod(reference):
            pod = await get_if_exists(self.client, kinds.POD, reference.name, namespace)
        return reservations.is_live(reference, pod)
