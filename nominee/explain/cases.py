"""Files that can be explained: a stream of manifests, one case, or many cases a line each."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from machinery.features.gates import DEFAULT, Gates, Version
from machinery.runtime.clock import Clock
from machinery.wire.manifests import manifest_documents
from machinery.wire.scalars import DecodeError
from nominee.explain.world import World, build_world
from scheduler.framework.interface import Plugin
from scheduler.framework.profile import Profile
from scheduler.plugins.registry import IN_TREE

CASE_VERSION = Version(1, 36)
"""Cases are verdicts of kube-scheduler 1.36.2, and their gates deviate from that version's."""


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster; `pod` as `namespace/name`, "" for every pending pod. A manifest stream has no name."""

    name: str
    documents: Sequence[Mapping[str, Any]]
    pod: str = ""
    gates: Mapping[str, bool] = field(default_factory=dict)

    def world(
        self,
        version: Version | None,
        gates: Mapping[str, bool],
        clock: Clock,
        profiles: Sequence[Profile] = (),
        classes: Mapping[str, type[Plugin]] = IN_TREE,
    ) -> World:
        """The case's cluster; DecodeError, GateError, StatusError. `gates` go over the case's own."""
        chosen = version or (CASE_VERSION if self.name else DEFAULT)
        return build_world(
            self.documents,
            gates=Gates("scheduler", chosen, {**self.gates, **gates}),
            clock=clock,
            rng=random.Random(0),
            profiles=profiles,
            classes=classes,
            admit=not self.name,  # a case says what it means
        )


def read_cases(text: str, *, lines: bool = False) -> Iterator[Case]:
    """The cases of a file, or one without a name for a stream of manifests; DecodeError.

    `lines`: the file's name says that each line is a document.
    """
    first = text.lstrip()[:1]
    if first == "{" and (lines or _is_json_line(text)):
        yield from _read_lines(text)
        return
    documents = manifest_documents(text)
    cases = [found for where, document in documents if (found := _case(document, where)) is not None]
    if cases and len(cases) != len(documents):
        raise DecodeError("", "cases and manifests in one file")
    if cases:
        yield from cases
    else:
        yield Case("", [document for _, document in documents])


def _is_json_line(text: str) -> bool:
    """Whether the first line is a whole JSON document, as in a file of many."""
    line, _, rest = text.lstrip().partition("\n")
    try:
        json.loads(line)
    except ValueError:
        return False
    return rest.lstrip()[:1] in ("", "{")


def _read_lines(text: str) -> Iterator[Case]:
    manifests: list[Mapping[str, Any]] = []
    cases = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        where = f"line {number}"
        try:
            document = json.loads(line)
        except ValueError as error:
            raise DecodeError(where, f"not valid JSON: {error}") from None
        if not isinstance(document, dict):
            raise DecodeError(where, "expected an object")
        case = _case(document, where)
        if case is None:
            manifests += (each for _, each in manifest_documents(line))
            continue
        cases += 1
        yield case
    if manifests and cases:
        raise DecodeError("", "cases and manifests in one file")
    if manifests:
        yield Case("", manifests)


def _case(document: Mapping[str, Any], where: str) -> Case | None:
    """None for a manifest."""
    if "objects" not in document or "kind" in document:
        return None
    objects, pod, gates = document["objects"], document.get("pod", ""), document.get("featureGates") or {}
    if not isinstance(objects, list) or not all(isinstance(each, Mapping) for each in objects):
        raise DecodeError(f"{where}.objects", "expected a list of objects")
    if not isinstance(pod, str):
        raise DecodeError(f"{where}.pod", "expected namespace/name")
    if not isinstance(gates, Mapping) or not all(isinstance(each, bool) for each in gates.values()):
        raise DecodeError(f"{where}.featureGates", "expected names with true or false")
    return Case(str(document.get("name") or where), objects, pod, dict(gates))
