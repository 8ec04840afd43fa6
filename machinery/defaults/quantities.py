"""Quantities as they are stored: canonical, rounded up to thousandths.

Source: kube-apiserver 1.36, SetDefaults_ResourceList and Quantity's own marshalling.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from nominee.machinery.api.errors import bad_request
from nominee.machinery.api.pb import core, resource
from nominee.machinery.resources.quantity import Quantity, QuantityError

_MILLI = -3


@lru_cache(maxsize=65536)
def _rounded(text: str) -> str:
    return str(Quantity.parse(text).round_up(_MILLI)[0])


@lru_cache(maxsize=65536)
def _canonical(text: str) -> str:
    return str(Quantity.parse(text))


def resource_list(values: Mapping[str, resource.Quantity]) -> None:
    """Write the quantities in canonical form, in place; StatusError 400 for an invalid quantity."""
    for quantity in values.values():
        text = quantity.string
        try:
            stored = _rounded(text or "0")
        except QuantityError as error:
            raise bad_request(str(error)) from None
        if stored != text:
            quantity.string = stored


def single(quantity: resource.Quantity) -> None:
    """Replace one quantity's text by its canonical text, in place.

    Raises:
        StatusError: 400 for a text that is not a quantity.
    """
    try:
        stored = _canonical(quantity.string or "0")
    except QuantityError as error:
        raise bad_request(str(error)) from None
    if stored != quantity.string:
        quantity.string = stored


def requirements(requirements: core.ResourceRequirements | core.VolumeResourceRequirements) -> None:
    resource_list(requirements.limits)
    resource_list(requirements.requests)
