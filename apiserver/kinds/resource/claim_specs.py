"""ResourceClaims, their templates and DeviceClasses (kube-apiserver 1.36, pkg/apis/resource/validation)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from nominee.apiserver.kinds.resource import device_terms
from nominee.apiserver.validation import field, lists
from nominee.apiserver.validation.values import device_names
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import devices

_REQUESTS_MAX = 32
_CONSTRAINTS_MAX = 32
_ALTERNATIVES_MAX = 8
_MODES = ("All", "ExactCount")
_ONE_OF = "exactly one of `exactly` or `firstAvailable` is required"
_UNKNOWN = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)

Requests = Mapping[str, frozenset[str]]
"""The names of a claim's requests, with those of their alternatives."""


def claim_spec(path: str, spec: devices.ResourceClaimSpec) -> list[Cause]:
    """Check the spec of a ResourceClaim, or of a template of claims."""
    claimed, path = spec.devices, f"{path}.devices"
    known = request_names(claimed)
    errors = lists.distinct(
        f"{path}.requests", claimed.requests, _REQUESTS_MAX, _request, key=lambda request: request.name
    )
    errors += lists.each(
        f"{path}.constraints", claimed.constraints, _CONSTRAINTS_MAX, partial(_constraint, known)
    )
    return errors + lists.each(
        f"{path}.config", claimed.config, device_terms.CONFIG_MAX, partial(_claim_config, known)
    )


def request_names(claimed: devices.DeviceClaim) -> Requests:
    return {
        request.name: frozenset(alternative.name for alternative in request.firstAvailable)
        for request in claimed.requests
    }


def _request(path: str, request: devices.DeviceRequest) -> list[Cause]:
    errors = device_names.label(f"{path}.name", request.name)
    exactly = request.HasField("exactly")
    if not exactly and not request.firstAvailable:
        errors.append(field.required(path, _ONE_OF))
    elif exactly and request.firstAvailable:
        errors.append(field.invalid(path, None, f"{_ONE_OF}, but multiple fields are set"))
    elif exactly:
        errors += _device_request(f"{path}.exactly", request.exactly)
    else:
        errors += lists.distinct(
            f"{path}.firstAvailable",
            request.firstAvailable,
            _ALTERNATIVES_MAX,
            _alternative,
            key=lambda alternative: alternative.name,
        )
    return errors


def _alternative(path: str, request: devices.DeviceSubRequest) -> list[Cause]:
    return [*device_names.label(f"{path}.name", request.name), *_device_request(path, request)]


def _device_request(
    path: str, request: devices.ExactDeviceRequest | devices.DeviceSubRequest
) -> Iterator[Cause]:
    yield from device_names.device_class(f"{path}.deviceClassName", request.deviceClassName)
    yield from device_terms.selectors(f"{path}.selectors", request.selectors)
    mode, count = request.allocationMode, request.count
    if mode == "All":
        if count:
            yield field.invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount":
        if count <= 0:
            yield field.invalid(f"{path}.count", count, "must be greater than zero")
    else:
        yield field.not_supported(f"{path}.allocationMode", mode, _MODES)
    for index, toleration in enumerate(request.tolerations):
        yield from device_terms.toleration(f"{path}.tolerations[{index}]", toleration)


def request_reference(known: Requests, path: str, name: str) -> Iterator[Cause]:
    """`request`, or `request/alternative`."""
    parts = name.split("/")
    if len(parts) > 2:
        yield field.invalid(path, name, _UNKNOWN)
        return
    for part in parts:
        yield from device_names.label(path, part)
    if parts[0] not in known or (len(parts) == 2 and parts[1] not in known[parts[0]]):
        yield field.invalid(path, name, _UNKNOWN)


def request_references(known: Requests, path: str, found: list[str]) -> list[Cause]:
    return lists.distinct(path, found, _REQUESTS_MAX, partial(request_reference, known))


def _constraint(known: Requests, path: str, constraint: devices.DeviceConstraint) -> list[Cause]:
    errors = request_references(known, f"{path}.requests", list(constraint.requests))
    if constraint.HasField("matchAttribute"):
        return [*errors, *device_names.fully_qualified(f"{path}.matchAttribute", constraint.matchAttribute)]
    if constraint.HasField("distinctAttribute"):
        at = f"{path}.distinctAttribute"
        return [*errors, *device_names.fully_qualified(at, constraint.distinctAttribute)]
    problem = (
        'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
    )
    return [*errors, field.required(path, problem)]


def _claim_config(known: Requests, path: str, config: devices.DeviceClaimConfiguration) -> list[Cause]:
    errors = request_references(known, f"{path}.requests", list(config.requests))
    return errors + device_terms.configuration(path, config.deviceConfiguration)
