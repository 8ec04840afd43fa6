"""The owners that objects of kinds without rules hold up, found in the history."""

from __future__ import annotations

import pytest

from nominee.lab.chaos.rest.past.other_dependents import owners_of_others
from nominee.lab.chaos.rest.state import LISTED
from nominee.machinery.api.pb import core
from tests.lab.invariants.histories import History, pod


def _config_map(name: str, *, blocks: bool = True, finalizer: str = "example.com/keep") -> core.ConfigMap:
    """Return a ConfigMap that is being deleted, and that a finalizer keeps."""
    found = core.ConfigMap()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = name, "default", f"uid-{name}"
    found.metadata.deletionTimestamp.seconds = 1
    found.metadata.finalizers.extend([finalizer] if finalizer else [])
    found.metadata.ownerReferences.add(uid=f"owner-of-{name}", blockOwnerDeletion=blocks)
    return found


def _pod() -> core.Pod:
    found = pod("a")
    found.metadata.ownerReferences.add(uid="owner-of-a", blockOwnerDeletion=True)
    return found


def _not_deleted() -> core.ConfigMap:
    found = _config_map("a")
    found.metadata.ClearField("deletionTimestamp")
    return found


LEFT = _config_map("a")


@pytest.mark.parametrize(
    ("history", "owners"),
    [
        (History().put(LEFT), {"owner-of-a"}),
        (History().state(LEFT), {"owner-of-a"}),
        (History().put(LEFT).delete(LEFT), set()),
        (History().put(LEFT, _config_map("a", blocks=False)), set()),
        (History().put(LEFT, _config_map("b")), {"owner-of-a", "owner-of-b"}),
        (History().put(_pod()), set()),
        (History().put(_config_map("a", finalizer="")), set()),
        (History().put(_not_deleted()), set()),
    ],
    ids=[
        *("left", "from before", "deleted", "blocks no more", "two", "a kind with rules", "no finalizer"),
        "the collector has forgotten it",
    ],
)
def test_owners_of_objects_that_are_left(history: History, owners: set[str]) -> None:
    assert owners_of_others(history.revisions, LISTED) == owners
