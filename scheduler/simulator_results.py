"""Build the annotations of kube-scheduler-simulator: the answers of every plugin in one attempt.

Source: kubernetes-sigs/kube-scheduler-simulator, result store and store reflector: same keys, same JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from nominee.scheduler.framework.api.status import is_success
from nominee.scheduler.framework.interface import Status

PREFIX: Final = "kube-scheduler-simulator.sigs.k8s.io/"
HISTORY: Final = f"{PREFIX}result-history"
STATE_KEY: Final = "simulator/results"
PASSED, SUCCESS, WAIT, VICTIM = "passed", "success", "wait", "preemption victim"
ANNOTATIONS_BYTES_MAX: Final = 256 * 1024  # of all of an object's annotations, keys and values
# What is left out of an attempt that is too large by itself, in this order.
_LARGE: Final = ("score-result", "finalscore-result", "filter-result", "postfilter-result")

ByNode = dict[str, dict[str, str]]


@dataclass(slots=True)
class Results:
    """By plugin, or by node and plugin. `blocked`: nodes that nominated pods make unfit."""

    prefilter: dict[str, list[str]] = field(default_factory=dict)
    prefilter_status: dict[str, str] = field(default_factory=dict)
    filter: ByNode = field(default_factory=dict)
    postfilter: ByNode = field(default_factory=dict)
    prescore: dict[str, str] = field(default_factory=dict)
    score: ByNode = field(default_factory=dict)
    finalscore: ByNode = field(default_factory=dict)
    reserve: dict[str, str] = field(default_factory=dict)
    permit: dict[str, str] = field(default_factory=dict)
    permit_timeout: dict[str, str] = field(default_factory=dict)
    prebind: dict[str, str] = field(default_factory=dict)
    bind: dict[str, str] = field(default_factory=dict)
    selected_node: str = ""
    blocked: set[str] = field(default_factory=set)

    def annotations(self) -> dict[str, str]:
        """Return the annotations of this attempt, without history."""
        found = {
            "prefilter-result": self.prefilter,
            "prefilter-result-status": self.prefilter_status,
            "filter-result": self.filter,
            "postfilter-result": self.postfilter,
            "prescore-result": self.prescore,
            "score-result": self.score,
            "finalscore-result": self.finalscore,
            "reserve-result": self.reserve,
            "permit-result": self.permit,
            "permit-result-timeout": self.permit_timeout,
            "prebind-result": self.prebind,
            "bind-result": self.bind,
        }
        texts = {f"{PREFIX}{name}": go_json(value) for name, value in found.items()}
        return {**texts, f"{PREFIX}selected-node": self.selected_node}


def status_text(status: Status | None) -> str:
    """Return a plugin's status as the simulator words it; Skip has no text."""
    if is_success(status):
        return SUCCESS
    assert status is not None
    return ", ".join(status.reasons)


def with_history(now: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations to be set: this attempt's, and those of all attempts, the newest last.

    `before`: all annotations of the pod. Old attempts are dropped until everything fits.
    """
    kept = sum(len(k.encode()) + len(v.encode()) for k, v in before.items() if not k.startswith(PREFIX))
    shown = dict(now)
    for name in _LARGE:
        if kept + _size({**shown, HISTORY: go_json([shown])}) <= ANNOTATIONS_BYTES_MAX:
            break
        shown[f"{PREFIX}{name}"] = "{}"
    history = [*_history(before.get(HISTORY, "")), shown]
    while history and kept + _size({**shown, HISTORY: go_json(history)}) > ANNOTATIONS_BYTES_MAX:
        del history[0]
    return {**shown, HISTORY: go_json(history)}


def _history(text: str) -> list[Any]:
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return []  # another client has written something else there
    return found if isinstance(found, list) else []


def _size(annotations: Mapping[str, str]) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())


def go_json(value: Any) -> str:
    """Return the value as Go's encoding/json: sorted keys, no spaces, and HTML's characters escaped."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
