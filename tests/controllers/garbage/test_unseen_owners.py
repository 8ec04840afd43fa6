"""Dependents of owners that the collector's informers have not shown."""

from __future__ import annotations

from nominee.controllers.garbage.shell.collector import GarbageCollector, ObjectReference
from nominee.controllers.shell.controller import UNSEEN_SECONDS
from nominee.machinery.api import kinds
from nominee.machinery.runtime.clock import FakeClock
from tests.controllers.builders import owned_by, pod, replica_set
from tests.controllers.contexts import context_of
from tests.support.fake_api import FakeApi


async def test_an_object_whose_owner_no_informer_has_shown_is_looked_at_again() -> None:
    """The owner may go before it is shown; then nothing would tell that its dependent has to go, too."""
    owner, dependent = replica_set(uid="s"), pod(uid="u", owners=[owned_by("s")])
    context = context_of(FakeApi.of(owner, dependent), FakeClock())
    collector = GarbageCollector(context)
    key = ObjectReference(kinds.POD, "default", "p")
    assert await collector.reconcile(key) == UNSEEN_SECONDS
    context.informers.of(kinds.REPLICA_SET)._put(owner)
    assert await collector.reconcile(key) is None
