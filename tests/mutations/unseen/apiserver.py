"""Mutations of the API server."""

from __future__ import annotations

from typing import Final

from tests.mutations.catalogue import Mutation
from tests.mutations.patch import Edit
from tests.mutations.unseen.unseen import Unseen

_MODULE: Final = "nominee.apiserver"
_STORE: Final = "nominee.apiserver.registry.store:Store"
_PROOFS: Final = "tests/mutations/proofs/test_apiserver.py"
_CACHE: Final = "nominee.apiserver.cache"

APISERVER: Final[tuple[Unseen, ...]] = (
    Unseen(
        mutation=Mutation(
            name="create-with-lost-answer-exists",
            title="a creation that etcd applied before its answer was lost is reported as AlreadyExists",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.apiserver.storage.etcd_storage:EtcdStorage._put",
                    "if uncertain and current is not None",
                    "if uncertain and expected_revision and current is not None",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="etcd dies after it has applied a creation: with generateName a second object is created",
        proof=f"{_PROOFS}::test_a_creation_that_was_applied_before_its_answer_was_lost_succeeds",
    ),
    Unseen(
        mutation=Mutation(
            name="write-without-change-answered-from-cache",
            title="an update that would not change the watch cache's object is not compared with etcd's",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_STORE}.update",
                    "if data == current.stored:\n            if newest:",
                    "if data == current.stored:\n            if newest or current is cached:",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="the watch cache lags; a client writes what the object was before another client's write",
        proof=f"{_PROOFS}::test_a_write_without_a_change_is_compared_with_etcd",
    ),
    Unseen(
        mutation=Mutation(
            name="refused-by-cached-object",
            title="an update that the watch cache's object refuses is not tried on the newest object",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_STORE}.update",
                    "except (StatusError, Verdict):\n            if newest:",
                    "except (StatusError, Verdict) as refusal:\n"
                    "            if newest or isinstance(refusal, StatusError):",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="the watch cache lags; a client that has read the newest object updates it, and gets 409",
        proof=f"{_PROOFS}::test_a_refusal_for_a_cached_object_is_not_final",
    ),
    Unseen(
        mutation=Mutation(
            name="old-watch-accepted-after-list",
            title="after it has listed its state again, the watch cache accepts watches from before that",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_CACHE}.kind_cache:KindCache.replace",
                    "self.oldest = self.last_change = revision",
                    "self.last_change = revision",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="the API server dies before it has sent an event; the client resumes at its old revision",
        proof=f"{_PROOFS}::test_a_watch_from_before_the_list_of_the_cache_is_expired",
    ),
    Unseen(
        mutation=Mutation(
            name="consistent-list-from-lagging-cache",
            title="a consistent list is served from a watch cache that does not reach the revision in time",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_CACHE}.reads:Reads._first_page",
                    "return await self._newest(kind, namespace, predicate, limit=limit)",
                    "pass",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="etcd's watch stalls for over three seconds, and a client lists what it has just written",
        proof=f"{_PROOFS}::test_a_consistent_list_has_what_a_lagging_cache_has_not",
    ),
    Unseen(
        mutation=Mutation(
            name="revision-read-joined-late",
            title="a reader of etcd's revision shares a read that began before it arrived",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.apiserver.storage.revision:RevisionReader.current",
                    "            self._batch = _Batch()\n"
                    "            try:\n"
                    "                batch.revision = await self._read()\n"
                    "            except StorageError as error:\n"
                    "                batch.error = error\n",
                    "            try:\n"
                    "                batch.revision = await self._read()\n"
                    "            except StorageError as error:\n"
                    "                batch.error = error\n"
                    "            self._batch = _Batch()\n",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="a list arrives while the revision is read for another one, after a write was acknowledged",
        proof=f"{_PROOFS}::test_a_reader_of_the_revision_does_not_share_a_read_that_began_before",
    ),
    Unseen(
        mutation=Mutation(
            name="binding-of-another-uid",
            title="a binding does not check the uid of the pod",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.apiserver.registry.pods.binding:bind",
                    "Preconditions(uid=metadata.uid, resource_version=metadata.resourceVersion)",
                    "Preconditions(resource_version=metadata.resourceVersion)",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="a pod is deleted and created again by its name while the scheduler binds it",
        proof=f"{_PROOFS}::test_a_pod_that_was_created_again_is_not_bound",
    ),
    Unseen(
        mutation=Mutation(
            name="two-evictions-counted-once",
            title="an eviction overwrites the budget's status of another eviction",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.apiserver.registry.pods.eviction:EvictionRequest._decrement",
                    "if found.revision != current.revision:",
                    "if found.message.metadata.uid != current.message.metadata.uid:",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="two pods of one budget are evicted at the same time: one disruption is counted for two",
        proof=f"{_PROOFS}::test_two_evictions_are_counted_twice",
    ),
    Unseen(
        mutation=Mutation(
            name="marked-object-not-removed",
            title="a repeated deletion of an object that is marked with no grace left does nothing",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.apiserver.registry.deletions.deletion:_again",
                    "return Mode.NOW",
                    "return Mode.PENDING",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="the API server dies between the mark and the removal: the pod terminates for ever",
        proof=f"{_PROOFS}::test_an_object_that_was_marked_before_a_crash_is_removed",
    ),
    Unseen(
        mutation=Mutation(
            name="budget-of-older-generation",
            title="an eviction is decided by a budget's status that is of an older generation",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.apiserver.registry.pods.budget:decremented",
                    "if status.observedGeneration < budget.metadata.generation:",
                    "if not status.observedGeneration:",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="a budget is made stricter, and a pod evicted before the disruption controller has seen it",
        proof=f"{_PROOFS}::test_a_budget_of_a_newer_generation_is_still_being_processed",
    ),
    Unseen(
        mutation=Mutation(
            name="namespace-removed-with-content",
            title="the second deletion of a namespace removes it although its content is not gone",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.apiserver.registry.deletions.namespace_deletion:delete",
                    "if namespace.spec.finalizers:",
                    "if namespace.metadata.finalizers:",
                ),
            ),
        ),
        component="apiserver",
        disturbed=False,
        reached="a namespace is deleted twice: its objects are left without one",
        proof=f"{_PROOFS}::test_a_namespace_with_content_stays_when_it_is_deleted_again",
    ),
    Unseen(
        mutation=Mutation(
            name="resize-takes-requests-only-of-first",
            title="a resize of several containers changes only the first one",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.apiserver.kinds.core.pods.resize:_take_resources",
                    'keep(target, source, "resizePolicy")',
                    'keep(target, source, "resizePolicy")\n        break',
                ),
            ),
        ),
        component="apiserver",
        disturbed=False,
        reached="a pod with two containers is resized",
        proof=f"{_PROOFS}::test_a_resize_changes_all_containers",
    ),
    Unseen(
        mutation=Mutation(
            name="watcher-not-removed",
            title="the watch cache keeps the watchers of all namespaces after their watches have ended",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_CACHE}.watch_cache:WatchCache._leave",
                    "if subscription.watcher is watcher:",
                    "if subscription.watcher is watcher and subscription.namespace:",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="a client's watch breaks: the cache goes on to send events to it, for ever",
        proof=f"{_PROOFS}::test_a_watch_that_has_ended_has_no_watcher",
    ),
)
