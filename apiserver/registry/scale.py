"""The scale subresource: autoscaling/v1's Scale over a workload's replicas and selector.

Source: kube-apiserver 1.36, registry/apps/replicaset/storage (ScaleREST).
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from k8s.io.api.autoscaling.v1 import generated_pb2 as autoscaling

from apiserver.registry import patching, rules, tracking
from apiserver.requests import PatchKind, RegistryAPI, WriteOptions
from machinery import errors
from machinery.errors import StatusError
from machinery.kinds import Kind
from machinery.patch import merge_patch
from machinery.pb import meta
from machinery.selectors import LabelSelector, SelectorError
from machinery.wire import codec

KIND = Kind("autoscaling", "v1", "Scale", "scales", autoscaling.Scale, autoscaling.Scale)
"""For its envelope; nobody stores a Scale."""
_ATTEMPTS_MAX = 5


def of(obj: Any) -> autoscaling.Scale:
    """A workload's Scale."""
    made = autoscaling.Scale()
    metadata = obj.metadata
    made.metadata.name, made.metadata.namespace = metadata.name, metadata.namespace
    made.metadata.uid, made.metadata.resourceVersion = metadata.uid, metadata.resourceVersion
    made.metadata.creationTimestamp.CopyFrom(metadata.creationTimestamp)
    made.spec.replicas = obj.spec.replicas
    made.status.replicas = obj.status.replicas
    made.status.selector = _selector(obj.spec.selector)
    return made


def _selector(selector: Any) -> str:
    """A replication controller's selector is a map, all others' a LabelSelector."""
    if isinstance(selector, meta.LabelSelector):
        try:
            return str(LabelSelector.from_message(selector))
        except SelectorError as error:
            raise StatusError(500, "", str(error)) from None
    return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))


async def put(
    registry: RegistryAPI,
    kind: Kind[Any],
    namespace: str,
    name: str,
    scale: Any,
    options: WriteOptions,
) -> autoscaling.Scale:
    """PUT of a Scale. Raises 400, 404, 409, 422."""
    if scale.metadata.name != name:
        raise errors.bad_request(
            f"the name of the object ({scale.metadata.name or '<empty>'}) does not match the name on the URL"
            f" ({name})"
        )
    return await _set(registry, kind, namespace, name, scale, options)


async def _set(
    registry: RegistryAPI,
    kind: Kind[Any],
    namespace: str,
    name: str,
    scale: autoscaling.Scale,
    options: WriteOptions,
) -> autoscaling.Scale:
    change: dict[str, Any] = {"spec": {"replicas": scale.spec.replicas}}
    conditions = {
        field: value for field in ("uid", "resourceVersion") if (value := getattr(scale.metadata, field))
    }
    if conditions:
        change["metadata"] = conditions
    patch = json.dumps(change).encode()

    def track(live: Any, new: Any, now: meta.Time) -> None:
        if not live.metadata.managedFields:
            return
        from apiserver.managed_fields import scaling
        from apiserver.managed_fields.manager import Endpoint

        scaling.track(Endpoint(kind), live, new, of(live), of(new), tracking.who(options, now))

    options = replace(options, track=track)
    changed = await registry.patch(kind, namespace, name, "", PatchKind.MERGE, patch, options)
    return of(changed.message)


async def patch(
    registry: RegistryAPI,
    kind: Kind[Any],
    namespace: str,
    name: str,
    patch_kind: PatchKind,
    patch: bytes,
    options: WriteOptions,
) -> autoscaling.Scale:
    """PATCH of a Scale: applied to the newest one, again where somebody else was quicker."""
    if patch_kind is PatchKind.APPLY:
        return await _apply(registry, kind, namespace, name, patch, options)
    change = patching.parse(patch_kind, patch)
    for attempt in range(_ATTEMPTS_MAX):
        current = await registry.get(kind, namespace, name)
        document = codec.to_json(of(current.message))
        if patch_kind is PatchKind.JSON:
            changed = patching.json_patched(document, change)
        else:
            # No list is in a Scale: strategic is as merge.
            changed = merge_patch(document, change)
        try:
            scale = codec.from_json(autoscaling.Scale, changed)
        except codec.DecodeError as error:
            raise errors.bad_request(str(error)) from None
        own_version = isinstance(change, dict) and bool(change.get("metadata", {}).get("resourceVersion"))
        try:
            return await _set(registry, kind, namespace, name, scale, options)
        except StatusError as error:
            if own_version or not errors.is_conflict(error) or attempt + 1 == _ATTEMPTS_MAX:
                raise
    raise AssertionError("unreachable")


async def _apply(
    registry: RegistryAPI, kind: Kind[Any], namespace: str, name: str, patch: bytes, options: WriteOptions
) -> autoscaling.Scale:
    """Server-side apply of a Scale: the owners of the workload's replicas are the Scale's."""
    from apiserver.managed_fields import scaling
    from apiserver.managed_fields.manager import Endpoint

    rules.check_options("PatchOptions", options, force=True)
    config, duplicates = tracking.configuration(patch)

    def track(live: Any, new: Any, now: meta.Time) -> None:
        parent, who = Endpoint(kind), tracking.who(options, now)
        made = scaling.apply(parent, live, of(live), config, who, force=bool(options.force))
        if made.metadata.name != name:
            raise errors.bad_request(
                f"the name of the object ({made.metadata.name}) does not match the name on the URL ({name})"
            )
        new.spec.replicas = made.spec.replicas
        new.metadata.uid, new.metadata.resourceVersion = made.metadata.uid, made.metadata.resourceVersion
        scaling.take_back(parent, live, new, made)

    # The change itself is what is applied to the newest Scale.
    plain = replace(options, force=None, track=track)
    changed = await registry.patch(kind, namespace, name, "", PatchKind.MERGE, b"{}", plain)
    tracking.tell_duplicates(duplicates, options)
    return of(changed.message)
