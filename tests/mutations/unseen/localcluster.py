"""Mutations of the supervisor."""

from __future__ import annotations

from typing import Final

from tests.mutations.catalogue import Mutation
from tests.mutations.patch import Edit
from tests.mutations.unseen.unseen import Unseen

_CORE: Final = "nominee.localcluster.supervisor.model.core:Supervision"

LOCALCLUSTER: Final[tuple[Unseen, ...]] = (
    Unseen(
        mutation=Mutation(
            name="left-down-after-three-crashes",
            title="a process that crashes three times in a row is left down although it was ready before",
            module="nominee.localcluster.supervisor",
            edits=(
                Edit(
                    f"{_CORE}.exited",
                    "hopeless = not process.ever_ready and process.failures",
                    "hopeless = process.failures",
                ),
            ),
        ),
        component="localcluster",
        disturbed=True,
        reached="a component is killed again and again before it is ready",
        proof="tests/localcluster/test_supervisor_core.py::test_restart_delays_double_up_to_the_limit",
    ),
    Unseen(
        mutation=Mutation(
            name="failures-in-a-row-not-counted",
            title="a process that crashes again and again is started after the shortest delay",
            module="nominee.localcluster.supervisor",
            edits=(
                Edit(
                    f"{_CORE}.exited",
                    "process.failures += 1",
                    "process.failures = 1",
                ),
            ),
        ),
        component="localcluster",
        disturbed=True,
        reached="a component cannot start: it is started again each second, and never left down",
        proof="tests/localcluster/test_supervisor_core.py::test_restart_delays_double_up_to_the_limit",
    ),
)
