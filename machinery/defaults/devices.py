"""Defaults of claims for devices (kube-apiserver 1.36, pkg/apis/resource/v1)."""

from __future__ import annotations

from collections.abc import Iterable

from nominee.machinery.api.pb import devices
from nominee.machinery.defaults import fields
from nominee.machinery.features.gates import Gates


def claim(obj: devices.ResourceClaim, gates: Gates) -> None:
    _requests(obj.spec)
    for result in obj.status.allocation.devices.results:
        _tolerations(result.tolerations)


def template(obj: devices.ResourceClaimTemplate, gates: Gates) -> None:
    _requests(obj.spec.spec)


def _requests(spec: devices.ResourceClaimSpec) -> None:
    for request in spec.devices.requests:
        if request.HasField("exactly"):
            _amount(request.exactly)
        for alternative in request.firstAvailable:
            _amount(alternative)


def _amount(request: devices.ExactDeviceRequest | devices.DeviceSubRequest) -> None:
    fields.set_empty(request, allocationMode="ExactCount")
    if request.allocationMode == "ExactCount" and request.count == 0:
        request.count = 1
    _tolerations(request.tolerations)


def _tolerations(tolerations: Iterable[devices.DeviceToleration]) -> None:
    for each in tolerations:
        fields.set_empty(each, operator="Equal")
