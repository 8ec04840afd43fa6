"""How recorded answers are compared: what differs from run to run is cut away."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

from nominee.machinery.runtime.clock import FakeClock, rfc3339

_RUN_DAY = rfc3339(FakeClock().now()).partition("T")[0]
_TIME_OF_RUN = re.compile(rf"{_RUN_DAY}T[\d:.]+Z")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VERSION = re.compile(r'((?:ResourceVersion: |\\"resourceVersion\\":\\"))\d+')
_UNSTABLE = ("uid", "resourceVersion", "creationTimestamp", "managedFields")


def expand(value: Any) -> Any:
    """`<x*N>` as N times x."""
    if isinstance(value, str):
        return re.sub(r"<x\*(\d+)>", lambda match: "x" * int(match[1]), value)
    if isinstance(value, dict):
        return {expand(key): expand(inner) for key, inner in value.items()}
    return [expand(inner) for inner in value] if isinstance(value, list) else value


def apply_change(document: Any, path: str | list[str], value: Any) -> None:
    """Set, append or `<delete>` what lies at a dotted path; a numeric part is an index of a list."""
    *parents, last = path.split(".") if isinstance(path, str) else path
    for part in parents:
        document = document[int(part)] if isinstance(document, list) else document.setdefault(part, {})
    if isinstance(document, list):
        if value == "<delete>":
            del document[int(last)]
        else:
            document[int(last) : int(last) + 1] = [value]
    elif value == "<delete>":
        document.pop(last, None)
    else:
        document[last] = value


def comparable(document: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what differs in each run; times of the run become `<now>`."""
    made = copy.deepcopy(document)
    metadata = made.get("metadata", {})
    for name in _UNSTABLE:
        metadata.pop(name, None)
    if "generateName" in metadata:
        metadata.pop("name", None)
    if "deletionTimestamp" in metadata:
        metadata["deletionTimestamp"] = "<set>"
    return dict(json.loads(without_times(json.dumps(made))))


def without_times(text: str) -> str:
    """Return a text with `<now>` for the times of the run; those that a request has stay."""
    return _TIME_OF_RUN.sub("<now>", text)


def masked(text: str) -> str:
    """Return a text without uids and resource versions, which differ in each run."""
    return _VERSION.sub(r"\1<rv>", _UID.sub("<uid>", text))


def drop(document: Any, pointers: list[str]) -> None:
    """Take away what lies at JSON pointers."""
    for pointer in pointers:
        *parents, last = (part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
        inner = document
        try:
            for part in parents:
                inner = inner[int(part)] if isinstance(inner, list) else inner[part]
            if isinstance(inner, list):
                inner[int(last)] = None
            else:
                inner.pop(last, None)
        except (KeyError, IndexError, ValueError, TypeError):
            continue
