"""The facts of a run: for each object the values that its fields had, in order. No I/O.

A fact has a subject, as `Pod default/a`, a name, as `status.phase`, and a text, as `Pending > Running`.
Uids, times, addresses, revisions and the random ends of names differ from run to run and are left out.
Objects that were created with a `generateName` are one subject, `Pod default/web-*`, with how many had each
text.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from google.protobuf.message import Message

from nominee.lab.history.revision import Revision, subject_of
from nominee.lab.scenario.result import ScenarioResult
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import metadata_of
from nominee.machinery.api.pb import core
from nominee.machinery.wire import codec
from nominee.machinery.wire.values.scalars import Json

Facts = dict[str, dict[str, str]]
"""By subject and name."""

NUMBERS: Final = ("writes", "seconds")
"""The names of facts that are numbers."""
ORDER, STEPS = "order", "steps"
"""Subjects beside the objects: the order in which pods were bound and deleted, and the times of the steps."""
_THEN: Final = " > "
_GONE: Final = "unset"
_VALUES_MAX: Final = 12
"""Of a field that changes more often, only the last value is a fact."""
_WITHOUT_FACTS: Final = frozenset(
    {"Event", "FlowSchema", "PriorityLevelConfiguration", "ResourceSlice", "PodMetrics", "NodeMetrics"}
)
_IGNORED: Final = re.compile(
    r"kind|apiVersion|metadata\.(name|namespace|generateName|uid|resourceVersion|generation|managedFields|"
    r"creationTimestamp|ownerReferences.*\.uid)|"
    r".*(Time|Timestamp|[uU]id|UID|resourceVersion|startedAt|finishedAt)|"
    r"status\.(nodeInfo|images|daemonEndpoints|addresses|podIPs?|hostIPs?|startTime)(\W.*)?|"
    r".*\.(imageID|containerID|image)|"
    r"status\.(conditions\[(ContainersReady|PodReadyToStartContainers)\]|"
    r"containerStatuses\[.*\]\.(name|started|allocatedResources.*))"
)
_VOLATILE: Final = (
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*Z?"), "TIME"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UID"),
    (re.compile(r"\b\d{1,3}(\.\d{1,3}){3}\b"), "IP"),
    (re.compile(r"\b[0-9a-f]{32,}\b"), "DIGEST"),
    (re.compile(r"\b(in|after|for|of) \d[\d.hmsµ]*s\b"), r"\1 DURATION"),
)
_KEYS: Final = ("type", "name", "key", "ip", "containerName", "uid")
_IN_ORDER: Final = re.compile(
    r"spec\.nodeName|status\.(nominatedNodeName|phase|conditions\[DisruptionTarget\])"
)
"""Fields whose former values matter also where something was disturbed."""
_TEXT_LENGTH_MAX: Final = 400
"""A longer text, as the autoscaler's status, is no fact."""
_SPEC: Final = re.compile(r"(spec|data|rules|webhooks|parameters|template)\b")


def facts_of(writes: Sequence[Revision], result: ScenarioResult) -> Facts:
    """Return the facts of a run: of its objects, of the order of pods, and the seconds of each step."""
    return _facts(writes, result, is_whole=True)


def ends_of(writes: Sequence[Revision], result: ScenarioResult) -> Facts:
    """Return the facts that a disturbance may leave as they are: of most fields the last value alone.

    No numbers of writes and seconds, and of events no messages.
    """
    found = _facts(writes, result, is_whole=False)
    ends = {
        subject: {name: text for name, text in facts.items() if not name.endswith(NUMBERS)}
        for subject, facts in found.items()
    }
    return {subject: facts for subject, facts in ends.items() if facts}


def _facts(writes: Sequence[Revision], result: ScenarioResult, *, is_whole: bool) -> Facts:
    names = _Names(writes)
    rows: dict[str, list[dict[str, str]]] = {}
    for row in _by_object(writes).values():
        subject = names.subject(row[-1])
        rows.setdefault(subject, []).append(_of_object(row, names, is_whole=is_whole))
    found = {subject: _merged(each) for subject, each in rows.items()}
    for subject, events in _events(writes, names, is_whole=is_whole).items():
        found.setdefault(subject, {})["events"] = events
    found[ORDER] = {
        "bound": ", ".join(names.of(each.name) for each in _bindings(writes)),
        "deleted": ", ".join(names.of(each.name) for each in _deletions(writes)),
    }
    found[STEPS] = {f"{step.number} {step.verb} seconds": f"{step.seconds:.2f}" for step in result.steps}
    return {subject: facts for subject, facts in sorted(found.items()) if facts}


class _Names:
    """Names without the ends that the API server has drawn."""

    def __init__(self, writes: Iterable[Revision]) -> None:
        drawn: dict[str, str] = {}
        for write in writes:
            obj = write.object if write.kind is not None else None
            prefix = metadata_of(obj).generateName if obj is not None else ""
            if prefix and write.name.startswith(prefix) and write.name not in drawn:
                drawn[write.name] = f"{prefix}*"
        self._drawn = drawn
        longest = sorted(drawn, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest))) if longest else None
        self._replaced: dict[str, str] = {}

    def of(self, text: str) -> str:
        """Return a text with these names replaced, and uids, times and addresses."""
        if text not in self._replaced:
            self._replaced[text] = self._of(text)
        return self._replaced[text]

    def _of(self, text: str) -> str:
        if self._pattern is not None:
            text = self._pattern.sub(lambda match: self._drawn[match[0]], text)
        for pattern, word in _VOLATILE:
            text = pattern.sub(word, text)
        return text

    def subject(self, write: Revision) -> str:
        """Return the subject of a write's object."""
        assert write.kind is not None
        return self.of(subject_of(write.kind, write.namespace, write.name))


def _has_facts(kind: AnyKind | None) -> bool:
    return kind is not None and kind.kind not in _WITHOUT_FACTS


def _by_object(writes: Iterable[Revision]) -> dict[str, list[Revision]]:
    found: dict[str, list[Revision]] = {}
    for write in writes:
        if _has_facts(write.kind) and not write.is_state:
            found.setdefault(write.key, []).append(write)
    return found


def _of_object(writes: Sequence[Revision], names: _Names, *, is_whole: bool) -> dict[str, str]:
    """Return the facts of one object, or of several with one name, one after another."""
    values: dict[str, list[str]] = {}
    before = _leaves(writes[0].previous, names)
    for path, text in before.items():
        values[path] = [text]
    existing = ["there"] if before else []
    created = ""
    for write in writes:
        after = _leaves(write.object, names)
        is_new = not before
        if is_new:
            existing.append("created")
            created = _digest(after)
        elif not after:
            existing.append("deleted")
        for path in before.keys() | after.keys():
            text = after.get(path, _GONE)
            row = values.setdefault(path, [] if is_new else [_GONE])
            if (row or [_GONE])[-1] != text and after:
                row.append(text)
        before = after
    facts = {
        path: _sequence(row) if is_whole or _IN_ORDER.fullmatch(path) else row[-1]
        for path, row in values.items()
        if len(row) > 1 or not _SPEC.match(path)
    }
    if existing[-1:] == ["there"]:
        facts = {path: text for path, text in facts.items() if len(values[path]) > 1}
    if len(existing) > 1 or existing[-1] != "there":
        facts["object"] = _THEN.join(existing)
    if created:
        facts["spec"] = created
    if writes[0].kind is not kinds.LEASE:
        facts["writes"] = str(len(writes))
    return facts


def _sequence(values: Sequence[str]) -> str:
    """Return the values in order, without the one that all fields begin with."""
    if len(values) > 1 and values[0] == _GONE:
        values = values[1:]
    return _THEN.join(values) if len(values) <= _VALUES_MAX else f"...{_THEN}{values[-1]}"


def _digest(leaves: Mapping[str, str]) -> str:
    """Return a short number for all fields beside the status of an object that is created."""
    row = sorted((path, text) for path, text in leaves.items() if _SPEC.match(path))
    return f"{zlib.crc32(json.dumps(row).encode()):08x}"


def _merged(rows: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the facts of the objects of one subject: of several, how many have each text."""
    if len(rows) == 1:
        return dict(rows[0])
    found = {"objects": str(len(rows))}
    for name in sorted({name for row in rows for name in row}):
        if name.endswith(NUMBERS):
            numbers = sorted(float(row[name]) for row in rows if name in row)
            found[name] = f"{sum(numbers):g}"
        else:
            counts = Counter(row.get(name, _GONE) for row in rows)
            found[name] = " | ".join(f"{count} x {text}" for text, count in sorted(counts.items()))
    return found


def _leaves(obj: Message | None, names: _Names) -> dict[str, str]:
    """Return the fields of an object by path, those of a condition together."""
    if obj is None:
        return {}
    rows = _walk("", codec.to_json(obj))
    return {path: names.of(text) for path, text in rows if 0 < len(text) <= _TEXT_LENGTH_MAX}


def _walk(path: str, value: Json) -> Iterator[tuple[str, str]]:
    if path and _IGNORED.fullmatch(path):
        return
    if isinstance(value, Mapping):
        if "type" in value and "status" in value and ".conditions[" in path:
            words = (value["status"], value.get("reason", ""), value.get("message", ""))
            yield path, " ".join(str(each) for each in words if each)
            return
        for name, part in value.items():
            yield from _walk(f"{path}.{name}" if path else str(name), part)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _walk(f"{path}[{_key(part, index)}]", part)
    else:
        yield path, value if isinstance(value, str) else json.dumps(value)


def _key(item: Json, index: int) -> str:
    """Return the name of an item in its list."""
    if not isinstance(item, Mapping):
        return str(index)
    target = item.get("targetRef")
    if isinstance(target, Mapping):
        return str(target.get("name"))
    return next((str(item[key]) for key in _KEYS if isinstance(item.get(key), str)), str(index))


def _events(writes: Iterable[Revision], names: _Names, *, is_whole: bool) -> dict[str, str]:
    """Return the events about each subject: type and reason of each, and the message of whole facts."""
    found: dict[str, set[str]] = {}
    for write in writes:
        event = write.object
        if isinstance(event, core.Event):
            about = event.involvedObject
            place = f"{about.namespace}/" if about.namespace else ""
            subject = names.of(f"{about.kind} {place}{about.name}")
            text = f"{event.type} {event.reason}"
            text = f"{text}: {event.message}" if is_whole else text
            found.setdefault(subject, set()).add(names.of(text))
    return {subject: " | ".join(sorted(texts)) for subject, texts in found.items()}


def _bindings(writes: Iterable[Revision]) -> Iterator[Revision]:
    """Yield the writes that gave a pod its node."""
    for write in writes:
        pod, before = write.after(kinds.POD), write.before(kinds.POD)
        if pod is not None and pod.spec.nodeName and not (before is not None and before.spec.nodeName):
            yield write


def _deletions(writes: Iterable[Revision]) -> Iterator[Revision]:
    """Yield the writes that began the deletion of a pod."""
    for write in writes:
        pod, before = write.after(kinds.POD), write.before(kinds.POD)
        if before is None or before.metadata.HasField("deletionTimestamp"):
            continue
        if pod is None or pod.metadata.HasField("deletionTimestamp"):
            yield write
