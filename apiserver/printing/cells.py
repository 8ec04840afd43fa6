"""Cells that several kinds have: ages, labels, containers, lists of which a few are shown.

Source: kube-apiserver 1.36, pkg/printers/internalversion (printers.go).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from nominee.machinery.api.pb import core, meta, networking
from nominee.machinery.printing.durations import human_duration

NONE, UNKNOWN, UNSET = "<none>", "<unknown>", "<unset>"
_LISTED_MAX = 3
_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def or_none(text: str) -> str:
    """Return the text, or `<none>` for an empty one."""
    return text or NONE


def age(metadata: meta.ObjectMeta, now: float) -> str:
    """Return how long ago an object was created; `now` in seconds since the epoch."""
    return since(metadata.creationTimestamp, now)


def since(time: meta.Time | meta.MicroTime, now: float) -> str:
    """Return how long ago a time was; `now` in seconds since the epoch."""
    if not time.seconds:
        return UNKNOWN
    return human_duration(now - time.seconds - time.nanos / 1e9)


def labels(values: Mapping[str, str]) -> str:
    """Return `key=value` pairs in order of their keys."""
    return ",".join(f"{key}={value}" for key, value in sorted(values.items())) or NONE


def containers(template: core.PodTemplateSpec) -> tuple[str, str]:
    """Return the names and the images of a template's containers."""
    found = template.spec.containers
    return ",".join(each.name for each in found), ",".join(each.image for each in found)


def few(values: Sequence[str]) -> str:
    """Return the first three of a list, and how many more there are."""
    text = ",".join(values[:_LISTED_MAX])
    return f"{text} + {len(values) - _LISTED_MAX} more..." if len(values) > _LISTED_MAX else text


def balancer_addresses(
    ingress: Iterable[core.LoadBalancerIngress | networking.IngressLoadBalancerIngress],
) -> list[str]:
    """Return the addresses of a load balancer, each once; the host name of one that has no address."""
    return sorted({each.ip or each.hostname for each in ingress} - {""})


def shown_access_modes(modes: Collection[str]) -> str:
    """Return the access modes of a claim or volume in their short forms."""
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in modes)


def shown_attributes_class(spec: core.PersistentVolumeClaimSpec | core.PersistentVolumeSpec) -> str:
    """Return the VolumeAttributesClass of a claim or volume."""
    return spec.volumeAttributesClassName if spec.HasField("volumeAttributesClassName") else UNSET
