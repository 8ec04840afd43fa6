"""Mutations of what all components share; each is applied to one of them."""

from __future__ import annotations

from typing import Final

from tests.mutations.catalogue import Mutation
from tests.mutations.patch import Edit
from tests.mutations.unseen.unseen import Unseen

_INFORMER: Final = "nominee.machinery.client.watches.informer:Informer"
_ELECTION: Final = "nominee.machinery.client.leader_election:LeaderElector"

MACHINERY: Final[tuple[Unseen, ...]] = (
    Unseen(
        mutation=Mutation(
            name="deletion-missed-by-list",
            title="the scheduler's informers drop objects that a second list does not have without a word",
            module="nominee.scheduler",
            edits=(
                Edit(
                    f"{_INFORMER}._replace",
                    "self._drop(key, self._objects[key], stale=True)",
                    "self._objects.pop(key)",
                ),
            ),
        ),
        component="machinery",
        disturbed=True,
        reached="a pod is deleted while the scheduler's watch is broken, and it must list again",
        proof="tests/machinery/test_informer.py::test_410_lists_again_and_reports_the_difference",
    ),
    Unseen(
        mutation=Mutation(
            name="recreation-seen-as-update",
            title="the kubelet's informers show a recreated object as an update of the old one",
            module="nominee.kubelet",
            edits=(
                Edit(
                    f"{_INFORMER}._put",
                    "if old is not None and metadata_of(old).uid != metadata.uid:",
                    "if old is not None and metadata_of(old).name != metadata.name:",
                ),
            ),
        ),
        component="machinery",
        disturbed=True,
        reached="a pod is deleted and created again by its name while the kubelet's watch is broken",
        proof="tests/machinery/test_informer.py::test_410_lists_again_and_reports_the_difference",
    ),
    Unseen(
        mutation=Mutation(
            name="watch-resumed-from-list",
            title="a watch that broke is resumed from the last list, not from the last event",
            module="nominee.controllers",
            edits=(
                Edit(
                    "nominee.machinery.client.watches.reflector:Reflector._watch_once",
                    "self.resource_version = self._list_from = str(batch[-1].revision)",
                    "self._list_from = str(batch[-1].revision)",
                ),
            ),
        ),
        component="machinery",
        disturbed=True,
        reached="a watch breaks: the controllers see all objects go back in time",
        proof="tests/machinery/test_informer.py::test_an_ended_watch_goes_on_where_it_was_bookmarks_included",
    ),
    Unseen(
        mutation=Mutation(
            name="renewal-outlasts-lease",
            title="a leader waits for the answer to a renewal for longer than its lease",
            module="nominee.scheduler",
            edits=(
                Edit(
                    f"{_ELECTION}._renew_until_lost",
                    "with anyio.move_on_after(max(self._seconds_left(), 0.0)):",
                    "with anyio.move_on_after(2 * self._timing.lease_seconds):",
                ),
            ),
        ),
        component="machinery",
        disturbed=True,
        reached="the answer to a renewal is withheld: two schedulers lead",
        proof=(
            "tests/mutations/proofs/test_machinery.py"
            "::test_a_leader_does_not_wait_for_an_answer_beyond_its_deadline"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="waiting-calls-dropped",
            title="the calls that wait when their stream breaks never end",
            module="nominee.kubelet",
            edits=(
                Edit(
                    "nominee.machinery.client.calls.call_batching:ClientCalls.drop_all",
                    "dropped = [*self._open.values(), *(call for call, _ in self._waiting.values())]",
                    "dropped = [*self._open.values()]",
                ),
            ),
        ),
        component="machinery",
        disturbed=True,
        reached="the API server dies while calls wait for its acknowledgement: pods of the kubelet hang",
        proof="tests/machinery/test_call_batching.py::test_a_broken_stream_drops_open_and_waiting_calls",
    ),
    Unseen(
        mutation=Mutation(
            name="cancelled-call-stays-open",
            title="a call that was given up stays among the open ones",
            module="nominee.scheduler",
            edits=(
                Edit(
                    "nominee.machinery.client.calls.call_batching:ClientCalls.give_up",
                    "opened = self._open.pop(number, None)",
                    "opened = self._open.get(number)",
                ),
            ),
        ),
        component="machinery",
        disturbed=True,
        reached="a call is cancelled or too late: its stream never becomes idle, and is not closed",
        proof="tests/machinery/test_call_batching.py::test_a_call_that_is_given_up",
    ),
    Unseen(
        mutation=Mutation(
            name="key-added-while-processed-waits",
            title="a delayed key is not queued before its time if it is added with a shorter delay",
            module="nominee.controllers",
            edits=(
                Edit(
                    "nominee.machinery.runtime.queues.work_queue:WorkQueue.add_after",
                    'if self._later_at.get(key, float("inf")) <= at:',
                    "if key in self._later_at:",
                ),
            ),
        ),
        component="machinery",
        disturbed=True,
        reached="an object waits for a long back-off or resync, and is to be reconciled again soon",
        proof="tests/machinery/test_work_queue.py::test_of_several_delays_the_shortest_counts",
    ),
    Unseen(
        mutation=Mutation(
            name="back-off-never-grows",
            title="a key that fails again and again waits for the shortest time",
            module="nominee.controllers",
            edits=(
                Edit(
                    "nominee.machinery.runtime.queues.work_queue:WorkQueue.add_rate_limited",
                    "self.backoff.delay(failures)",
                    "self.backoff.delay(1)",
                ),
            ),
        ),
        component="machinery",
        disturbed=True,
        reached="a quota refuses the pods of a set: it is tried 200 times a second",
        proof="tests/machinery/test_work_queue.py::test_a_back_off_grows_until_it_is_forgotten",
    ),
)
