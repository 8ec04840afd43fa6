"""Writes that are tried again because their answer was lost, and what is stored by then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from aetcd import rpc

from nominee.apiserver.storage.etcd_storage import EtcdStorage
from nominee.apiserver.storage.interface import KeyExists, RevisionMismatch, StorageUnavailable
from nominee.machinery.client.etcd_channel import connect
from nominee.machinery.runtime.clock import FakeClock

KEY, OURS, OTHERS = "/registry/pods/default/p", b"ours", b"others"


class Answers:
    """Etcd refuses a transaction since the key has this value, perhaps after it had applied it before."""

    kv = SimpleNamespace(Txn=None)

    def __init__(self, value: bytes, *, uncertain: bool, known: int, created: int = 1) -> None:
        self._value, self._uncertain, self.revision, self._created = value, uncertain, known, created

    async def __call__(self, send: object, request: rpc.TxnRequest) -> tuple[rpc.TxnResponse, bool]:
        pair = rpc.KeyValue(
            key=KEY.encode(), value=self._value, create_revision=self._created, mod_revision=7
        )
        pairs = [pair] if self._value else []
        found = rpc.ResponseOp(response_range=rpc.RangeResponse(kvs=pairs))
        return rpc.TxnResponse(succeeded=False, responses=[found]), self._uncertain


async def written(value: bytes, *, uncertain: bool, expected: int, known: int = 6) -> int:
    """Return the revision of a write whose transaction etcd refuses in this way; 7 is that of the value."""
    async with await connect(["127.0.0.1:1"]) as channel:
        storage = EtcdStorage(channel, FakeClock())
        storage._call = cast("Any", Answers(value, uncertain=uncertain, known=known))
        if expected:
            return await storage.update(KEY, OURS, expected_revision=expected)
        return await storage.create(KEY, OURS)


@pytest.mark.parametrize("expected", [0, 5])
async def test_a_write_that_is_stored_was_applied(expected: int) -> None:
    assert await written(OURS, uncertain=True, expected=expected) == 7


@pytest.mark.parametrize(("value", "expected"), [(OTHERS, 0), (OTHERS, 5), (b"", 5)])
async def test_the_outcome_is_unknown_if_another_write_came_after_it(value: bytes, expected: int) -> None:
    """It may have been applied: neither a conflict nor `already exists` is known to be true."""
    with pytest.raises(StorageUnavailable) as error:
        await written(value, uncertain=True, expected=expected)
    assert error.value.maybe_applied


@pytest.mark.parametrize("value", [OURS, OTHERS])
async def test_a_value_that_was_there_before_is_of_another_write(value: bytes) -> None:
    """A controller whose cache lags writes the same status twice: the second write was not applied."""
    with pytest.raises(RevisionMismatch):
        await written(value, uncertain=True, expected=5, known=7)


async def test_a_first_try_that_is_refused_is_a_conflict() -> None:
    with pytest.raises(KeyExists):
        await written(OTHERS, uncertain=False, expected=0)
    with pytest.raises(RevisionMismatch):
        await written(OTHERS, uncertain=False, expected=5)


async def deleted(value: bytes, *, uncertain: bool, created: int, known: int = 6) -> None:
    """Delete the key at revision 5; etcd refuses it, since the key has this value, which was made so."""
    async with await connect(["127.0.0.1:1"]) as channel:
        storage = EtcdStorage(channel, FakeClock())
        answers = Answers(value, uncertain=uncertain, known=known, created=created)
        storage._call = cast("Any", answers)
        await storage.delete(KEY, expected_revision=5)


@pytest.mark.parametrize("value", [b"", OTHERS], ids=["gone", "created again"])
async def test_a_deletion_whose_answer_was_lost_does_not_go_on_with_another_object(value: bytes) -> None:
    """The first try may have deleted the key: a second one would delete two objects with one request."""
    with pytest.raises(StorageUnavailable) as error:
        await deleted(value, uncertain=True, created=7)
    assert error.value.maybe_applied


@pytest.mark.parametrize(
    ("uncertain", "created", "known"),
    [(True, 1, 6), (True, 5, 4), (True, 6, 6), (False, 7, 6)],
    ids=["changed", "changed, not known here", "created again before", "certain"],
)
async def test_a_deletion_that_was_not_applied_is_a_conflict(
    uncertain: bool, created: int, known: int
) -> None:
    with pytest.raises(RevisionMismatch):
        await deleted(OTHERS, uncertain=uncertain, created=created, known=known)
