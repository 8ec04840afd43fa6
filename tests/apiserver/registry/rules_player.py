"""Plays a case of apiserver_rules.jsonl through the Registry on a real etcd and says what differs."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from nominee.apiserver.admission.chain import NAMES
from nominee.apiserver.objects.requests import Act, Create, Delete, Update, WriteOptions
from nominee.apiserver.objects.watcher import Watcher, WatchEvent
from nominee.apiserver.registry.registry import Registry
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core, meta, policy
from nominee.machinery.features.gates import Gates, Version, parse_gates
from nominee.machinery.runtime.clock import FakeClock, rfc3339
from nominee.machinery.wire import codec, envelope
from tests.apiserver.cache.test_watch_cache import LIMIT_SECONDS, Bench

VERSION = Version(1, 36)
NAMESPACE = "default"
_PODS = kinds.POD.key_prefix(NAMESPACE)
_BODIES: dict[str, Any] = {"binding": core.Binding, "eviction": policy.Eviction}
_RECORDED_FIELDS = frozenset(
    {
        "conditions", "cpuRequest", "deletionTimestampSet", "generation", "image", "labels", "nodeName",
        "nominatedNodeName", "phase", "qosClass",
    }
)  # fmt: skip
"""Fields of the stored pod that each recorded case has."""
_OPTIONAL_FIELDS = frozenset({"deletionGracePeriodSeconds", "observedGeneration"})
"""Recorded where they are set."""
_CONDITION_FIELDS = ("type", "status", "reason", "message", "observedGeneration")
# What golden cases need that is not in their data: writes of the budget by another client just before ours,
# and entries of disruptedPods (left out there for their size).
_BUDGET_CONFLICTS = {"evict-pdb-conflict-once": 1, "evict-pdb-conflict-forever": 1000}
_DISRUPTED_PODS = {"evict-too-many-disrupted": 2001}


class QuickClock(FakeClock):
    """Time passes only by sleeping, and sleeping takes no time."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.set(self.now() + seconds)
        await anyio.lowlevel.checkpoint()


def registry_of(
    bench: Bench,
    *,
    gates: Mapping[str, bool] | None = None,
    version: Version = VERSION,
    disabled: Collection[str] = NAMES,
    clock: Any = None,
    rng: random.Random | None = None,
) -> Registry:
    """A registry at a version; by default without admission, as the golden data was made."""
    return Registry(
        bench.storage,
        bench.cache,
        None,
        gates=Gates("apiserver", version, gates or {}),
        clock=clock or QuickClock(),
        rng=rng or random.Random(1),
        disabled_admission=disabled,
    )


class Meddled:
    """Storage in which another client writes the budgets just before our first `times` writes of them."""

    def __init__(self, storage: Any, times: int) -> None:
        self._storage = storage
        self.times = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    async def update(self, key: str, data: bytes, *, expected_revision: int, lease_seconds: int = 0) -> int:
        if "poddisruptionbudgets" in key and self.times > 0:
            self.times -= 1
            found = await self._storage.get(key)
            # The same bytes are a write all the same: the revision moves.
            await self._storage.update(key, found.data, expected_revision=found.mod_revision)
        revision: int = await self._storage.update(
            key, data, expected_revision=expected_revision, lease_seconds=lease_seconds
        )
        return revision


def _gates(given: Any) -> dict[str, bool]:
    """Gates as an object or as `A=true,B=false`."""
    if isinstance(given, str):
        return parse_gates(given)
    return dict(given or {})


@dataclass
class Player:
    """One case; `differences` are the ways in which we were not like the real server."""

    bench: Bench
    case: dict[str, Any]
    clock: QuickClock = field(default_factory=QuickClock)
    differences: list[str] = field(default_factory=list)

    async def play(self) -> list[str]:
        storage = self.bench.storage
        await self._store_budgets()
        await self._store_pod()
        conflicts = _BUDGET_CONFLICTS.get(self.case.get("id", ""), 0)
        meddled: Any = Meddled(storage, conflicts)
        bench = replace(self.bench, storage=meddled) if conflicts else self.bench
        registry = registry_of(bench, gates=_gates(self.case.get("gates")), clock=self.clock)
        *earlier, last = self.case["requests"]
        for request in earlier:
            refused = await self._request(registry, request, await self._revision())
            self._differ("earlier request", refused, None)
        # The recordings have what the last request changed.
        before = await storage.current_revision()
        await self.bench.cache.wait_until(before)
        watcher = self.bench.cache.watch(kinds.POD, NAMESPACE, since_revision=before)
        try:
            revision = await self._revision()
            failure = await self._request(registry, last, revision)
            self._check_answer(failure, revision)
            await self._check_stored(revision)
            await self._check_events(watcher)
            await self._check_budgets()
        finally:
            watcher.close()
            await self._clean()
        return self.differences

    # Arranging.

    def _document(self, document: dict[str, Any], revision: int) -> dict[str, Any]:
        """With this run's resource version and times."""
        made = {**document, "metadata": dict(document.get("metadata", {}))}
        metadata = made["metadata"]
        if metadata.get("resourceVersion") == "CURRENT":
            metadata["resourceVersion"] = str(revision) if revision else ""
        stamp = metadata.get("deletionTimestamp", "")
        if stamp.startswith("NOW"):
            metadata["deletionTimestamp"] = rfc3339(self.clock.now() + float(stamp[3:].rstrip("s") or 0))
        return made

    async def _store_pod(self) -> None:
        if self.case.get("pod") is None:
            return
        obj = codec.from_json(core.Pod, self._document(self.case["pod"], 0))
        obj.metadata.resourceVersion = ""
        key = kinds.POD.key(obj.metadata.namespace, obj.metadata.name)
        await self.bench.storage.create(key, envelope.encode(obj))

    async def _revision(self) -> int:
        """The pod's present resource version."""
        name = ((self.case.get("pod") or {}).get("metadata") or {}).get("name", "p")
        value = await self.bench.storage.get(_PODS + name)
        return value.mod_revision if value is not None else 0

    async def _store_budgets(self) -> None:
        for document in self.case.get("pdbs") or []:
            obj = codec.from_json(policy.PodDisruptionBudget, document)
            obj.metadata.resourceVersion = ""
            for number in range(_DISRUPTED_PODS.get(self.case.get("id", ""), 0)):
                obj.status.disruptedPods[f"gone-{number}"].seconds = 1_700_000_000
            key = kinds.POD_DISRUPTION_BUDGET.key(obj.metadata.namespace, obj.metadata.name)
            await self.bench.storage.create(key, envelope.encode(obj))

    async def _clean(self) -> None:
        for prefix in ("/registry/pods/", "/registry/poddisruptionbudgets/"):
            found = await self.bench.storage.range(prefix)
            for value in found.items:
                await self.bench.storage.delete(value.key, expected_revision=value.mod_revision)

    # Acting.

    async def _request(
        self, registry: Registry, request: dict[str, Any], revision: int
    ) -> StatusError | None:
        plural, _, rest = request["path"].partition("/")
        assert plural == "pods"
        name, _, subresource = rest.partition("/")
        options = WriteOptions(dry_run=bool(request.get("dryRun")))
        try:
            if request["verb"] == "DELETE":
                document = self._options(request.get("options") or {}, revision)
                delete = codec.from_json(meta.DeleteOptions, document)
                if options.dry_run:
                    delete.dryRun.append("All")
                await registry.perform(Delete(kinds.POD, NAMESPACE, name, delete))
                return None
            document = self._document(request["body"], revision)
            if "deleteOptions" in document:
                document["deleteOptions"] = self._options(document["deleteOptions"], revision)
            body = codec.from_json(_BODIES.get(subresource, core.Pod), document)
            if request["verb"] != "POST":
                await registry.perform(Update(kinds.POD, NAMESPACE, name, subresource, body, options))
            elif subresource == "binding":
                await registry.perform(Act(kinds.POD, NAMESPACE, name, "binding", body, options))
            elif subresource == "eviction":
                await registry.perform(Act(kinds.POD, NAMESPACE, name, "eviction", body, options))
            else:
                await registry.perform(Create(kinds.POD, NAMESPACE, body, options))
        except StatusError as error:
            return error
        return None

    def _options(self, options: dict[str, Any], revision: int) -> dict[str, Any]:
        preconditions = options.get("preconditions")
        if preconditions and preconditions.get("resourceVersion") == "CURRENT":
            options = {**options, "preconditions": {**preconditions, "resourceVersion": str(revision)}}
        return options

    # Checking.

    @property
    def _is_recorded(self) -> bool:
        """Whether the case has all fields; a case of our own names only those that it is about."""
        return "rule" in self.case

    def _differ(self, what: str, got: Any, wanted: Any) -> None:
        if got != wanted:
            self.differences.append(f"{what}: got {got!r}, want {wanted!r}")

    def _check_answer(self, failure: StatusError | None, revision: int) -> None:
        expect = self.case["expect"]
        self._differ("ok", failure is None, expect["ok"])
        if failure is None or expect["ok"]:
            if failure is not None:
                self.differences.append(f"failed: {failure!r}")
            return
        self._differ("code", failure.code, expect["code"])
        self._differ("reason", failure.reason, expect.get("reason", ""))
        wanted = expect["message"].replace("<CURRENT>", str(revision))
        prefix = expect.get("messageIsPrefix")
        got = failure.message[: len(wanted)] if prefix else failure.message
        self._differ("message", got, wanted)
        self._differ("retryAfterSeconds", failure.retry_after_seconds, expect.get("retryAfterSeconds", 0))
        if "causes" not in expect and not self._is_recorded:
            return
        wanted_causes = [(c["type"], c["message"], c.get("field", "")) for c in expect.get("causes") or []]
        got_causes = [(c.reason, c.message, c.field) for c in failure.causes]
        if self._is_recorded:  # recorded as a set; the message has their order
            got_causes, wanted_causes = sorted(got_causes), sorted(wanted_causes)
        if prefix and len(got_causes) == len(wanted_causes):  # the recording cut the texts off
            got_causes = [
                (reason, message[: len(wanted)], field)
                for (reason, message, field), (_, wanted, _) in zip(got_causes, wanted_causes, strict=True)
            ]
        self._differ("causes", got_causes, wanted_causes)

    async def _check_stored(self, revision: int) -> None:
        expect = self.case["expect"]
        name = (self.case.get("pod") or {}).get("metadata", {}).get("name", "p")
        value = await self.bench.storage.get(_PODS + name)
        self._differ("podExistsAfter", value is not None, expect["podExistsAfter"])
        changed = value is not None and value.mod_revision != revision
        self._differ("resourceVersionChanged", changed, expect["resourceVersionChanged"])
        if value is None or "after" not in expect:
            return
        got = _after(envelope.decode(kinds.POD, value.data))
        wanted = dict(expect["after"])
        if "conditions" in wanted:
            wanted["conditions"] = wanted["conditions"] or []
        for key in sorted({*wanted, *(_OPTIONAL_FIELDS & set(got))} if self._is_recorded else wanted):
            self._differ(f"after.{key}", got.get(key), wanted.get(key))

    async def _check_events(self, watcher: Watcher) -> None:
        await self.bench.cache.wait_until(await self.bench.storage.current_revision())
        found: list[WatchEvent] = []
        with anyio.fail_after(LIMIT_SECONDS):
            while watcher.queued:
                found += await anext(watcher)
        self._differ("watchEvents", [_event(event) for event in found], self.case["expect"]["watchEvents"])

    async def _check_budgets(self) -> None:
        for name, wanted in self.case["expect"].get("pdbAfter", {}).items():
            namespaces = {
                p["metadata"]["namespace"] for p in self.case["pdbs"] if p["metadata"]["name"] == name
            }
            kind = kinds.POD_DISRUPTION_BUDGET
            value = await self.bench.storage.get(kind.key(namespaces.pop(), name))
            assert value is not None
            status = envelope.decode(kind, value.data).status
            self._differ(f"pdb {name} allowed", status.disruptionsAllowed, wanted["disruptionsAllowed"])
            disrupted = sorted(status.disruptedPods)
            self._differ(f"pdb {name} disrupted", disrupted, sorted(wanted["disruptedPods"] or []))


def _condition(condition: core.PodCondition) -> dict[str, Any]:
    fields = {name: getattr(condition, name) for name in _CONDITION_FIELDS}
    return {name: value for name, value in fields.items() if value}


def _after(pod: core.Pod) -> dict[str, Any]:
    """Return what the golden data records of a stored pod."""
    container = pod.spec.containers[0]
    requests = container.resources.requests
    recorded: dict[str, Any] = {
        "conditions": [_condition(condition) for condition in pod.status.conditions],
        "cpuRequest": requests["cpu"].string if "cpu" in requests else "",
        "deletionTimestampSet": pod.metadata.HasField("deletionTimestamp"),
        "generation": pod.metadata.generation,
        "image": container.image,
        "labels": dict(pod.metadata.labels) or None,
        "annotations": dict(pod.metadata.annotations) or None,
        "finalizers": list(pod.metadata.finalizers) or None,
        "ownerReferences": [codec.to_json(owner) for owner in pod.metadata.ownerReferences] or None,
        "schedulingGates": [gate.name for gate in pod.spec.schedulingGates] or None,
        "nodeName": pod.spec.nodeName,
        "nominatedNodeName": pod.status.nominatedNodeName,
        "phase": pod.status.phase,
        "qosClass": pod.status.qosClass,
    }
    if pod.metadata.HasField("deletionGracePeriodSeconds"):
        recorded["deletionGracePeriodSeconds"] = pod.metadata.deletionGracePeriodSeconds
    if pod.status.observedGeneration:
        recorded["observedGeneration"] = pod.status.observedGeneration
    return recorded


def _event(event: WatchEvent) -> str:
    pod: core.Pod = event.object.message
    text = event.type.name
    if pod.metadata.HasField("deletionTimestamp"):
        text += f" deleting(grace={pod.metadata.deletionGracePeriodSeconds})"
    if any(condition.type == "DisruptionTarget" for condition in pod.status.conditions):
        text += " DisruptionTarget"
    return text


__all__ = ["Meddled", "Player", "QuickClock", "registry_of"]
