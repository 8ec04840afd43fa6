"""Secrets (kube-apiserver 1.36, ValidateSecret; registry/core/secret)."""

from __future__ import annotations

import json
from collections.abc import Iterator

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy
from nominee.apiserver.objects.selectable_fields import metadata_fields, selectable
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field, names
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core

_SIZE_BYTES_MAX = 1024 * 1024
_ACCOUNT = "kubernetes.io/service-account.name"
_DOCKER = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}


def _validate(obj: core.Secret) -> Iterator[Cause]:
    for key in sorted(obj.data):
        yield from field.check(f"data[{key}]", key, names.config_key)
    if sum(map(len, obj.data.values())) > _SIZE_BYTES_MAX:
        yield field.too_long("data", _SIZE_BYTES_MAX)
    yield from _of_type(obj)


def _of_type(obj: core.Secret) -> list[Cause]:
    """Check the keys that a Secret's type requires."""
    data = obj.data
    if obj.type == "kubernetes.io/service-account-token":
        if obj.metadata.annotations.get(_ACCOUNT):
            return []
        return [field.required(f"metadata.annotations[{_ACCOUNT}]")]
    if obj.type in _DOCKER:
        key = _DOCKER[obj.type]
        if key not in data:
            return [field.required(f"data[{key}]")]
        try:
            if isinstance(json.loads(data[key]), dict):
                return []
            problem = "json: cannot unmarshal into Go value of type map[string]interface {}"
        except RecursionError:
            problem = "exceeded max depth"
        except ValueError as error:
            problem = _go_problem(data[key]) or str(error)
        return [field.invalid(f"data[{key}]", "<secret contents redacted>", problem)]
    if obj.type == "kubernetes.io/basic-auth" and not ({"username", "password"} & set(data)):
        return [field.required("data[username]"), field.required("data[password]")]
    if obj.type == "kubernetes.io/ssh-auth" and not data.get("ssh-privatekey"):
        return [field.required("data[ssh-privatekey]")]
    if obj.type == "kubernetes.io/tls":
        return [field.required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
    return []


def _go_problem(data: bytes) -> str:
    from nominee.apiserver.schema.documents import json_problem

    return json_problem(data.decode(errors="replace"))


def _validate_change(new: core.Secret, old: core.Secret) -> Iterator[Cause]:
    yield from field.immutable("type", new.type, old.type)
    if old.immutable:
        problem = "field is immutable when `immutable` is set"
        if not new.immutable:
            yield field.forbidden("immutable", problem)
        if new.data != old.data:
            yield field.forbidden("data", problem)


def _warnings(secret: core.Secret, _old: core.Secret | None) -> Iterator[str]:
    if secret.type == "kubernetes.io/tls":
        for key, what in (("tls.crt", "certificate"), ("tls.key", "key")):
            if b"-----BEGIN " not in secret.data.get(key, b""):
                yield f"tls: failed to find any PEM data in {what} input"
                return


def _fields(secret: core.Secret) -> dict[str, str]:
    return metadata_fields(secret) | {"type": secret.type}


def _row(secret: core.Secret, now: float) -> Cells:
    return [secret.type, len(secret.data)]


RULES = KindRules(
    kind=kinds.SECRET,
    strategy=SimpleStrategy(kinds.SECRET, _validate, _validate_change, warnings=_warnings),
    columns=Columns(_row, NAME, Column("Type", "secret-v1#type"), Column("Data", "secret-v1#data"), AGE),
    fields=selectable(core.Secret, _fields),
    limits_own_size=True,
)
