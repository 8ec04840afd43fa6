"""VolumeAttachments (kube-apiserver 1.36, pkg/apis/storage/validation)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.rules import DeleteResponse, KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.go_dump import dump
from nominee.apiserver.validation.values import device_names
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import storage

_METADATA_BYTES_MAX = 256 * 1024
_ERROR_BYTES_MAX = 1024
_ONE_OF = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def _validate(obj: storage.VolumeAttachment) -> list[Cause]:
    spec = obj.spec
    errors = list(device_names.driver("spec.attacher", spec.attacher))
    inline, named = spec.source.HasField("inlineVolumeSpec"), spec.source.HasField("persistentVolumeName")
    if inline == named:
        errors.append(
            field.forbidden("spec.source", _ONE_OF) if inline else field.required("spec.source", _ONE_OF)
        )
    elif named:
        at = "spec.source.persistentVolumeName"
        if not spec.source.persistentVolumeName:
            errors.append(field.required(at, "must specify non empty persistentVolumeName"))
        else:
            errors += device_names.subdomain(at, spec.source.persistentVolumeName)
    errors += field.check("spec.nodeName", spec.nodeName, names.dns_subdomain)
    return [*errors, *_attachment_status(obj.status)]


def _attachment_status(status: storage.VolumeAttachmentStatus) -> Iterator[Cause]:
    """validateVolumeAttachmentStatus."""
    said = status.attachmentMetadata
    if sum(len(key.encode()) + len(said[key].encode()) for key in said) > _METADATA_BYTES_MAX:
        yield field.too_long("status.attachmentMetadata", _METADATA_BYTES_MAX)
    for name in ("attachError", "detachError"):
        if not status.HasField(name):
            continue
        error = getattr(status, name)
        if len(error.message.encode()) > _ERROR_BYTES_MAX:
            yield field.too_long(f"status.{name}.message", _ERROR_BYTES_MAX)
        yield from field.non_negative(f"status.{name}.errorCode", error.errorCode)


def _validate_status(new: storage.VolumeAttachment, old: storage.VolumeAttachment) -> list[Cause]:
    """Upstream looks at the whole object."""
    return _validate(new)


def _validate_change(new: storage.VolumeAttachment, old: storage.VolumeAttachment) -> list[Cause]:
    return [] if new.spec == old.spec else [field.invalid("spec", dump(new.spec), field.IMMUTABLE)]


def _row(obj: storage.VolumeAttachment, now: float) -> Cells:
    spec = obj.spec
    return [spec.attacher, spec.source.persistentVolumeName, spec.nodeName, obj.status.attached]


RULES = KindRules(
    kind=kinds.VOLUME_ATTACHMENT,
    strategy=SimpleStrategy(
        kinds.VOLUME_ATTACHMENT,
        _validate,
        _validate_change,
        status=_validate_status,
        status_resets_metadata=True,
    ),
    columns=Columns(
        _row,
        NAME,
        Column("Attacher", "volumeattachmentspec-storage-v1#attacher", format="name"),
        Column("PV", "volumeattachmentsource-storage-v1#persistentVolumeName"),
        Column("Node", "volumeattachmentspec-storage-v1#nodeName"),
        Column("Attached", "volumeattachmentstatus-storage-v1#attached", "boolean"),
        AGE,
    ),
    delete_response=DeleteResponse.OBJECT,
    needs_resource_version=True,
)
