"""ServiceAccount: sets a pod's service account and mounts its token (kube-apiserver 1.36).

Without controllers nothing creates the account `default`, and every pod would be refused: `nominee up`
without controllers disables the plugin. See docs/design/008-who-may-do-what.md.

Source: plugin/pkg/admission/serviceaccount.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from nominee.apiserver.access.node.graph import secrets
from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Plugin
from nominee.apiserver.objects import generate_name
from nominee.apiserver.validation.pods.annotations import MIRROR_ANNOTATION
from nominee.machinery.api.kinds import POD, SERVICE_ACCOUNT
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import Clock

DEFAULT = "default"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
VOLUME_PREFIX = "kube-api-access-"
TOKEN_SECONDS = 3607
"""An hour, and the seconds that mark these tokens: a pod's own requests have other life times."""
ENFORCE = "kubernetes.io/enforce-mountable-secrets"
_ATTEMPTS_MAX = 10
_AGAIN_SECONDS = 0.1


class ServiceAccount(Plugin):
    """Sets the account of new pods and mounts its token.

    `rng` names the volumes, and spreads the retries that wait for the account `default`.
    """

    name = "ServiceAccount"
    requests = ((POD, "CREATE", ""), (POD, "UPDATE", "ephemeralcontainers"))

    def __init__(self, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng

    async def admit(self, request: AdmissionRequest, lookup: Lookup) -> None:
        pod = request.obj
        if request.operation != "CREATE" or MIRROR_ANNOTATION in pod.metadata.annotations:
            return
        spec = pod.spec
        if not spec.serviceAccountName:
            spec.serviceAccountName = DEFAULT
        spec.serviceAccount = spec.serviceAccountName
        account = await self._account(request, lookup)
        if _mounts_token(account, spec):
            self._mount(spec)
        if not spec.imagePullSecrets:
            spec.imagePullSecrets.extend(account.imagePullSecrets)

    async def validate(self, request: AdmissionRequest, lookup: Lookup) -> None:
        pod = request.obj
        if MIRROR_ANNOTATION in pod.metadata.annotations:
            _check_mirror(request)
            return
        if not pod.spec.serviceAccountName:
            named = f"{request.namespace}/{request.name}"
            raise request.forbidden(f"no service account specified for pod {named}")
        account = await self._account(request, lookup)
        if account.metadata.annotations.get(ENFORCE, "").lower() in ("true", "t", "1"):
            _check_secrets(request, account)

    async def _account(self, request: AdmissionRequest, lookup: Lookup) -> core.ServiceAccount:
        """Return the pod's account. `default` is waited for, since a controller is about to create it.

        Raises: StatusError 403 when the account does not exist.
        """
        name = request.obj.spec.serviceAccountName
        attempts = _ATTEMPTS_MAX if name == DEFAULT else 1
        for attempt in range(attempts):
            if attempt:
                await self._clock.sleep(_AGAIN_SECONDS * (1 + self._rng.random()))
            found = await lookup.find(SERVICE_ACCOUNT, request.namespace, name)
            if found is not None:
                account: core.ServiceAccount = found.message
                return account
        raise request.forbidden(
            f'error looking up service account {request.namespace}/{name}: serviceaccount "{name}" not found'
        )

    def _mount(self, spec: core.PodSpec) -> None:
        volume = next(
            (each.name for each in spec.volumes if _is_token(each)),
            "",
        )
        name = volume or generate_name.generate(VOLUME_PREFIX, self._rng)
        mounted = False
        for container in (*spec.initContainers, *spec.containers):
            if not any(mount.mountPath == TOKEN_PATH for mount in container.volumeMounts):
                container.volumeMounts.add(name=name, readOnly=True, mountPath=TOKEN_PATH)
                mounted = True
        if mounted and not volume:
            _token_volume(spec.volumes.add(name=name).volumeSource.projected)


def _is_token(volume: core.Volume) -> bool:
    return volume.volumeSource.HasField("projected") and volume.name.startswith(VOLUME_PREFIX)


def _token_volume(volume: core.ProjectedVolumeSource) -> None:
    volume.defaultMode = 0o644
    token = volume.sources.add().serviceAccountToken
    token.expirationSeconds, token.path = TOKEN_SECONDS, "token"
    authority = volume.sources.add().configMap
    authority.localObjectReference.name = "kube-root-ca.crt"
    authority.items.add(key="ca.crt", path="ca.crt")
    own = volume.sources.add().downwardAPI.items.add(path="namespace")
    own.fieldRef.apiVersion, own.fieldRef.fieldPath = "v1", "metadata.namespace"


def _mounts_token(account: core.ServiceAccount, spec: core.PodSpec) -> bool:
    """Report whether to mount the token; the pod's field takes precedence over the account's."""
    for each in (spec, account):
        if each.HasField("automountServiceAccountToken"):
            return bool(each.automountServiceAccountToken)
    return True


def _check_mirror(request: AdmissionRequest) -> None:
    """Refuse a mirror pod with an account or secrets: it shows a static pod and must not gain access."""
    spec = request.obj.spec
    if spec.serviceAccountName:
        raise request.forbidden("a mirror pod may not reference service accounts")
    if secrets(request.obj):
        raise request.forbidden("a mirror pod may not reference secrets")
    for volume in spec.volumes:
        for source in volume.volumeSource.projected.sources:
            if source.HasField("serviceAccountToken"):
                raise request.forbidden("a mirror pod may not use ServiceAccountToken volume projections")


def _secrets_of_environment(container: Any) -> Iterator[tuple[str, str]]:
    """Yield (the field that refers to it, secret) of a container."""
    for variable in container.env:
        if variable.valueFrom.HasField("secretKeyRef"):
            yield f"envVar {variable.name}", variable.valueFrom.secretKeyRef.localObjectReference.name
    for source in container.envFrom:
        if source.HasField("secretRef"):
            yield "envFrom", source.secretRef.localObjectReference.name


def _check_secrets(request: AdmissionRequest, account: core.ServiceAccount) -> None:
    """Refuse secrets that the account does not list, if its annotation requires that."""
    spec, name = request.obj.spec, account.metadata.name
    allowed = {secret.name for secret in account.secrets}
    for volume in spec.volumes if request.operation == "CREATE" else ():
        source = volume.volumeSource
        if source.HasField("secret") and source.secret.secretName not in allowed:
            raise request.forbidden(
                f'volume with secret.secretName="{source.secret.secretName}" is not allowed because service'
                f" account {name} does not reference that secret"
            )
    words = ((spec.initContainers, "init container"), (spec.containers, "container"))
    groups: list[tuple[Any, str]] = [*words] if request.operation == "CREATE" else []
    groups.append(
        ([each.ephemeralContainerCommon for each in spec.ephemeralContainers], "ephemeral container")
    )
    for containers, word in groups:
        for container in containers:
            for how, secret in _secrets_of_environment(container):
                if secret not in allowed:
                    raise request.forbidden(
                        f"{word} {container.name} with {how} referencing secret.secretName="
                        f'"{secret}" is not allowed because service account {name} does not reference that'
                        " secret"
                    )
    if request.operation != "CREATE":
        return
    pulls = {reference.name for reference in account.imagePullSecrets}
    for index, reference in enumerate(spec.imagePullSecrets):
        if reference.name not in pulls:
            raise request.forbidden(
                f'imagePullSecrets[{index}].name="{reference.name}" is not allowed because service account'
                f" {name} does not reference that imagePullSecret"
            )
