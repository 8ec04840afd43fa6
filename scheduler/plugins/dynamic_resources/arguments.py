"""Parse DynamicResourcesArgs: the time limits of a search on a node and of getting devices ready."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nominee.machinery.features.gates import Gates
from nominee.scheduler.framework.runtime.profile import ArgumentError

FILTER_TIMEOUT_SECONDS = 10.0
BINDING_TIMEOUT_SECONDS = 600.0
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds; 0: no limit."""

    filter_seconds: float
    binding_seconds: float


def read(args: Mapping[str, Any], gates: Gates) -> Timeouts:
    """Return the parsed arguments.

    Raises:
        ArgumentError: with the field's path.
    """
    filter_seconds = _duration(args, "filterTimeout", FILTER_TIMEOUT_SECONDS)
    if filter_seconds < 0:
        raise ArgumentError(
            "filterTimeout", f'Invalid value: "{args["filterTimeout"]}": must be zero or positive'
        )
    binding_seconds = _duration(args, "bindingTimeout", BINDING_TIMEOUT_SECONDS)
    if "bindingTimeout" in args:
        shown = f'Invalid value: "{args["bindingTimeout"]}"'
        for gate in ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"):
            if not gates.enabled(gate):
                raise ArgumentError("bindingTimeout", f"Forbidden: requires feature gate {gate}")
        if binding_seconds < 1:
            raise ArgumentError("bindingTimeout", f"{shown}: must be at least 1 second")
    if not gates.enabled("DRASchedulerFilterTimeout"):
        filter_seconds = 0.0
    return Timeouts(filter_seconds, binding_seconds)


def _duration(args: Mapping[str, Any], name: str, default: float) -> float:
    text = args.get(name)
    if text is None:
        return default
    body = text.lstrip("+-") if isinstance(text, str) else ""
    parts = list(_PART.finditer(body))
    if body == "0":
        return 0.0
    if not parts or "".join(part[0] for part in parts) != body:
        raise ArgumentError(name, f"Invalid value: {text!r}: not a duration")
    seconds = sum(float(part[1]) * _SECONDS[part[2]] for part in parts)
    return -seconds if text.startswith("-") else seconds
