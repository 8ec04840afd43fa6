"""How many replicas each replica set of a deployment may have."""

from __future__ import annotations

import pytest

from nominee.controllers.deployments import sizes
from tests.controllers.deployments.builders import deployment, replica_set


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "posts", "missing"),
    [
        (10, "25%", "25%", (3, 2), 2),
        (1, "25%", "25%", (1, 0), 0),
        (3, 0, "25%", (0, 1), 1),  # both round to 0: one may go
        (2, 0, 5, (0, 5), 2),
        (4, 2, 0, (2, 0), 0),
        (0, 1, 1, (1, 1), 0),
        (3, "200%", 0, (6, 0), 0),
    ],
)
def test_fenceposts(
    replicas: int, surge: int | str, unavailable: int | str, posts: tuple[int, int], missing: int
) -> None:
    found = deployment(replicas=replicas, surge=surge, unavailable=unavailable)
    assert sizes.fenceposts(found) == posts
    assert sizes.unavailable_max(found) == missing
    assert sizes.unavailable_max(deployment(strategy="Recreate")) == 0
    assert sizes.surge_max(deployment(strategy="Recreate")) == 0


@pytest.mark.parametrize(
    ("replicas", "before", "largest", "want"),
    [
        (15, {"old": 8, "new": 5}, 13, {"old": 12, "new": 7}),
        (5, {"old": 5, "new": 5}, 10, {"old": 3, "new": 4}),
        (0, {"old": 4, "new": 2}, 6, {"old": 0, "new": 0}),
        (10, {"old": 10}, 10, {"old": 13}),
        # Grown and the leftover goes to the largest; of equals the newest.
        (6, {"old": 3, "new": 3}, 6, {"old": 4, "new": 4}),
        # No annotation: the deployment's own size is the base; without a size no set has a share.
        (20, {"old": 10}, 0, {"old": 25}),
    ],
)
def test_sets_grow_and_shrink_in_proportion(
    replicas: int, before: dict[str, int], largest: int, want: dict[str, int]
) -> None:
    found = deployment(replicas=replicas)
    rows = [
        replica_set(name, name, size, at=number, largest=largest, desired=1)
        for number, (name, size) in enumerate(before.items())
    ]
    assert sizes.proportional(found, rows) == want
