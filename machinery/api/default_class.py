"""The default StorageClass and IngressClass of a cluster: the newest that is annotated as default."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

from nominee.machinery.api.pb import networking, storage

DEFAULT_STORAGE_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
DEFAULT_INGRESS_CLASS: Final = ("ingressclass.kubernetes.io/is-default-class",)

_Class = TypeVar("_Class", storage.StorageClass, networking.IngressClass)


def is_default(found: _Class, annotations: Iterable[str]) -> bool:
    """Return whether one of the annotations marks the class as default."""
    return any(found.metadata.annotations.get(name) == "true" for name in annotations)


def default_class(classes: Iterable[_Class], annotations: Iterable[str]) -> _Class | None:
    """Return the default class; of several the newest, of these the first by name.

    Source: Kubernetes 1.36, pkg/volume/util (GetDefaultClass); admission plugin DefaultIngressClass.
    """
    return min(
        (found for found in classes if is_default(found, annotations)),
        key=lambda found: (-found.metadata.creationTimestamp.seconds, found.metadata.name),
        default=None,
    )
