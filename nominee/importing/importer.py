"""Write the objects of another cluster: waves in the order of references, many objects of a wave at once."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import anyio
from google.protobuf.message import Message

from nominee.importing import order
from nominee.importing.preparation import LEFT_OUT, NotServed, kind_of, prepare
from nominee.importing.report import Report
from nominee.importing.sources import Document, identity, metadata_of
from nominee.importing.uids import complete
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.objects import metadata_of as metadata_of_message
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client, retry_unavailable

CALLS_MAX = 32
PROGRESS_SECONDS = 2.0
_UNAVAILABLE = 503
_KINDS_OF_PODS = (kinds.NAMESPACE, kinds.SERVICE_ACCOUNT)


@dataclass(slots=True)
class Importer:
    """One import. `progress` takes a line from time to time; `rng` gives the new uids.

    `where` returns the place of an object's field in the source, "" without one.
    """

    client: Client
    rng: random.Random
    progress: Callable[[str], None]
    secrets: bool = False
    where: Callable[[Document, str], str] = lambda _document, _path: ""
    report: Report = field(default_factory=Report)
    _uids: dict[str, str] = field(default_factory=dict)
    """New uids by the old ones."""
    _lost: set[str] = field(default_factory=set)
    """Old uids of owners that do not come."""
    _done: int = 0

    async def run(self, documents: Sequence[Document]) -> Report:
        """Write all objects; those that the server refuses are in the report.

        Raises:
            StatusError: the server cannot be reached.
        """
        served = self._served(documents)
        completed = complete([document for _, document in served], self._new_uid)
        served = [(kind, document) for (kind, _), document in zip(served, completed, strict=True)]
        present = await self._present({*_KINDS_OF_PODS, *(kind for kind, _ in served)})
        coming: list[Document] = []
        for kind, document in served:
            own = present.get((kind.kind, *identity(document)[2:]))
            if own is not None:
                self.report.present[kind.kind] += 1
            else:
                coming.append(document)
            self._uids[metadata_of(document)["uid"]] = own or self._new_uid()
        made = order.lacking(coming, present)
        self.report.additions = [" ".join(filter(None, identity(each)[1:])) for each in made]
        known = set(self._uids)
        self._lost = {uid for each in coming for uid in order.owner_uids(each) if uid not in known}
        await self._write(order.waves([*coming, *made]))
        return self.report

    def _served(self, documents: Iterable[Document]) -> list[tuple[AnyKind, Document]]:
        found = []
        for document in documents:
            if (name := str(document.get("kind"))) in LEFT_OUT:
                self.report.left_out[name] += 1
                continue
            try:
                found.append((kind_of(document), document))
            except NotServed as error:
                self.report.refuse(document, str(error))
        return found

    async def _present(self, wanted: Iterable[AnyKind]) -> dict[tuple[str, str, str], str]:
        """Return the uids of all objects that exist, by kind, namespace and name."""
        found = {}
        for kind in sorted(wanted, key=repr):
            with errors.ignoring(errors.is_not_found):  # without its feature gate: the creates report it
                for obj in (await self.client.list(kind)).items:
                    metadata = metadata_of_message(obj)
                    found[kind.kind, metadata.namespace, metadata.name] = metadata.uid
        return found

    def _new_uid(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    async def _write(self, waves: Sequence[Sequence[Document]]) -> None:
        total = sum(map(len, waves))
        limiter = anyio.CapacityLimiter(CALLS_MAX)

        async def one(document: Document) -> None:
            async with limiter:
                await self._create(document)

        async def show() -> None:
            while True:
                await anyio.sleep(PROGRESS_SECONDS)
                self.progress(f"{self._done} of {total} objects")

        try:
            async with anyio.create_task_group() as shown:
                shown.start_soon(show)
                for wave in waves:
                    async with anyio.create_task_group() as tasks:
                        for document in wave:
                            tasks.start_soon(one, document)
                shown.cancel_scope.cancel()
        except BaseExceptionGroup as group:  # the same for all that were under way
            gone, others = group.split(StatusError)
            if gone is None or others is not None:
                raise
            raise _first(gone) from None

    async def _create(self, document: Document) -> None:
        gone = self._lost.intersection(order.owner_uids(document))
        try:
            obj = prepare(document, self._uids, gone, secrets=self.secrets)
            if isinstance(obj, core.Service):
                await self._create_service(document, obj)
            else:
                await self._send(obj)
        except NotServed as error:
            self._refused(document, str(error), error.path)
        except StatusError as error:
            if error.code == _UNAVAILABLE:
                raise
            self._refused(document, error.message)
        else:
            self.report.counts[str(document.get("kind"))] += 1
            if gone:
                kinds_of_owners = _owner_kinds(document, gone)
                self.report.lose_part(document, f"its owner does not come: {kinds_of_owners}")
        self._done += 1

    async def _create_service(self, document: Document, service: core.Service) -> None:
        """Create a Service; with another address where its own is not of this cluster's ranges."""
        try:
            await self._send(service)
        except StatusError as error:
            if not any(cause.field.startswith("spec.clusterIP") for cause in error.causes):
                raise
            other = copy_of(service)
            other.spec.ClearField("clusterIP")
            other.spec.ClearField("clusterIPs")
            await self._send(other)
            self.report.lose_part(document, "has another cluster IP: its own is not in this cluster's ranges")

    async def _send(self, obj: Message) -> None:
        async def create() -> None:
            # An answer may be lost: then the object exists.
            with errors.ignoring(errors.is_already_exists):
                await self.client.create(obj, imported=True)

        await retry_unavailable(create)

    def _refused(self, document: Document, message: str, path: str = "") -> None:
        self.report.refuse(document, message, lambda: self.where(document, path) if path else "")
        if uid := metadata_of(document).get("uid"):
            self._lost.add(uid)


def _first(group: BaseExceptionGroup[StatusError]) -> StatusError:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _owner_kinds(document: Document, gone: set[str]) -> str:
    owners = zip(order.owner_uids(document), order.owner_references(document), strict=True)
    return ", ".join(sorted({str(owner.get("kind")) for uid, owner in owners if uid in gone}))
