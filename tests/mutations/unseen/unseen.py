"""A mutation with the facts that the table of the unseen ones needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tests.mutations.catalogue import Mutation

Component = Literal[
    "apiserver", "scheduler", "kubelet", "autoscaler", "controllers", "machinery", "localcluster"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """A mutation, and how it is reached.

    `disturbed`: it is visible only after a crash, a lost response, a stale watch, or in one interleaving.
    `reached` says what leads to it in a cluster, and what is wrong then. `proof` is the pytest node id of a
    test that passes without the mutation and fails with it.
    """

    mutation: Mutation
    component: Component
    disturbed: bool
    reached: str
    proof: str
