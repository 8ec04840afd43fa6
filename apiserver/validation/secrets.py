"""Secrets (kube-apiserver 1.36, pkg/apis/core/validation)."""

from __future__ import annotations

import json

from apiserver.validation import field, names
from machinery.api.errors import Cause
from machinery.api.pb import core

_SIZE_BYTES_MAX = 1024 * 1024
_ACCOUNT = "kubernetes.io/service-account.name"
_DOCKER = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}


def secret(obj: core.Secret) -> list[Cause]:
    errors: list[Cause] = []
    for key in sorted(obj.data):
        errors += [field.invalid(f"data[{key}]", key, problem) for problem in names.config_key(key)]
    if sum(map(len, obj.data.values())) > _SIZE_BYTES_MAX:
        errors.append(field.too_long("data", _SIZE_BYTES_MAX))
    return errors + _of_type(obj)


def _of_type(obj: core.Secret) -> list[Cause]:
    """What a type needs."""
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
    from apiserver.schema.documents import json_problem

    return json_problem(data.decode(errors="replace"))


def change(new: core.Secret, old: core.Secret) -> list[Cause]:
    errors = field.immutable("type", new.type, old.type)
    if old.immutable:
        problem = "field is immutable when `immutable` is set"
        if not new.immutable:
            errors.append(field.forbidden("immutable", problem))
        if new.data != old.data:
            errors.append(field.forbidden("data", problem))
    return errors
