"""The resource claim controller: a key is a pod whose claims are to be made, or a claim to look after."""

from __future__ import annotations

from typing import Literal, NamedTuple

from controllers.devices import reservations, templates
from controllers.shell.controller import Context, Worker
from machinery.api import kinds
from machinery.api.claim_templates import claim_from
from machinery.api.errors import StatusError, is_not_found
from machinery.api.objects import ObjectKey, is_controlled_by, key_of
from machinery.api.pb import core, devices

Claim = devices.ResourceClaim


class Key(NamedTuple):
    what: Literal["pod", "claim"]
    key: ObjectKey

    def __str__(self) -> str:
        return f"{self.what}:{self.key}"


class ResourceClaimController(Worker[Key]):
    name = "resource-claim"
    component = "resource_claim"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.pods = context.informers.of(kinds.POD)
        self.claims = context.informers.of(kinds.RESOURCE_CLAIM)
        self.templates = context.informers.of(kinds.RESOURCE_CLAIM_TEMPLATE)
        self.pods.add_handler(
            on_add=self._pod_changed,
            on_update=lambda _old, new: self._pod_changed(new),
            on_delete=lambda pod, _stale: self._release(pod),
        )
        self.claims.add_handler(
            on_add=self._claim_changed,
            on_update=lambda _old, new: self._claim_changed(new),
            on_delete=lambda claim, _stale: self._claim_gone(claim),
        )
        self.templates.add_handler(on_add=self._template_came)

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

    def _claim_changed(self, claim: Claim) -> None:
        self.queue.add(Key("claim", key_of(claim)))

    def _claim_gone(self, claim: Claim) -> None:
        """A pod that still needs it gets another."""
        name, _ = reservations.owning_pod(claim)
        if name:
            self.queue.add(Key("pod", ObjectKey(claim.metadata.namespace, name)))

    def _template_came(self, template: devices.ResourceClaimTemplate) -> None:
        for pod in self.pods.list(template.metadata.namespace):
            if templates.waits_for_claims(pod):
                self.queue.add(Key("pod", key_of(pod)))

    async def reconcile(self, key: Key) -> float | None:
        if key.what == "pod":
            await self._make_claims(key.key)
        else:
            await self._look_after(key.key)
        return None

    # Pods

    async def _make_claims(self, key: ObjectKey) -> None:
        pod = self.pods.get(key.name, key.namespace)
        if pod is None or templates.is_done(pod) or pod.metadata.HasField("deletionTimestamp"):
            return
        named: dict[str, str] = {}
        known = {s.name: s.resourceClaimName for s in pod.status.resourceClaimStatuses}
        for reference in pod.spec.resourceClaims:
            if not reference.HasField("resourceClaimTemplateName"):
                continue
            found = self.claims.get(known.get(reference.name, ""), key.namespace)
            if found is not None:
                if not is_controlled_by(found, pod):
                    text = f"{key_of(found)} was not created for pod {key} (pod is not owner)"
                    self._cannot(pod, reference.name, f"ResourceClaim {text}")
                continue
            claim = await self._make(pod, reference)
            if claim is not None:
                named[reference.name] = claim.metadata.name
        if named:
            patch = templates.statuses_patch(named)
            await self.client.patch(kinds.POD, key.name, key.namespace, patch, subresource="status")
        await self._reserve(pod)

    async def _make(self, pod: core.Pod, reference: core.PodResourceClaim) -> Claim | None:
        """The claim that was made before, or a new one; None when it cannot be made."""
        found = templates.made_for(pod, reference.name, self.claims.by_index("owner", pod.metadata.uid))
        if found is not None:
            return found
        name = reference.resourceClaimTemplateName
        template = self.templates.get(name, pod.metadata.namespace)
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{name}" not found'
            self._cannot(pod, reference.name, f'resource claim template "{name}": {missing}')
            return None  # its coming brings the pod back
        try:
            return await self.client.create(claim_from(template, pod, reference.name))
        except StatusError as error:
            self._cannot(pod, reference.name, f"create ResourceClaim : {error.message}")
            raise

    def _cannot(self, pod: core.Pod, reference: str, text: str) -> None:
        self.recorder.event(
            pod, "Warning", "FailedResourceClaimCreation", action="",
            note=f"PodResourceClaim {reference}: {text}",
        )  # fmt: skip

    async def _reserve(self, pod: core.Pod) -> None:
        """For a pod that was put on its node by something else than the scheduler."""
        for name in templates.claim_names(pod):
            claim = self.claims.get(name, pod.metadata.namespace)
            if claim is None or not reservations.reserves_itself(pod, claim):
                continue
            new = Claim()
            new.CopyFrom(claim)
            new.status.reservedFor.add(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
            await self.client.update(new, subresource="status")

    # Claims

    async def _look_after(self, key: ObjectKey) -> None:
        claim = self.claims.get(key.name, key.namespace)
        if claim is None:
            return
        live = [
            reference.uid for reference in claim.status.reservedFor if await self._is_live(claim, reference)
        ]
        plan = reservations.plan(claim, lambda reference: reference.uid in live, self._owner_is_done(claim))
        if plan.status is not None:
            claim = await self.client.update(plan.status, subresource="status")
        if plan.drops_finalizer and reservations.FINALIZER in claim.metadata.finalizers:
            await self.client.update(reservations.without_finalizer(claim))
        if plan.deletes:
            await self.client.delete(kinds.RESOURCE_CLAIM, key.name, key.namespace)

    async def _is_live(self, claim: Claim, reference: devices.ResourceClaimConsumerReference) -> bool:
        """Consumers that are no pods are somebody else's business; an unknown pod is asked for."""
        if reference.resource != "pods" or reference.apiGroup:
            return True
        namespace = claim.metadata.namespace
        pod = self.pods.get(reference.name, namespace)
        if pod is None:
            try:
                pod = await self.client.get(kinds.POD, reference.name, namespace)
            except StatusError as error:
                if not is_not_found(error):
                    raise
                return False
        return bool(pod.metadata.uid == reference.uid) and not templates.is_done(pod)

    def _owner_is_done(self, claim: Claim) -> bool:
        """Of the pod it was made for; a pod that is gone is the garbage collector's business."""
        name, uid = reservations.owning_pod(claim)
        pod = self.pods.get(name, claim.metadata.namespace) if name else None
        return pod is not None and (pod.metadata.uid != uid or templates.is_done(pod))
