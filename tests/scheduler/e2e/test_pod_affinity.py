"""Pods that want to be, or do not want to be, near to other pods, on real processes."""

from __future__ import annotations

from typing import Any

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core, meta
from tests.scheduler.e2e.objects import bound, node, pod, pod_when, scheduled_condition
from tests.support.cluster import Cluster

NO_TAINTS = "--disable-admission-plugins=TaintNodesByCondition"
ZONE = "topology.kubernetes.io/zone"


async def start(cluster: Cluster) -> None:
    cluster.arguments("apiserver", NO_TAINTS)
    await cluster.start("etcd", "apiserver", "scheduler")


def affine(name: str, kind: str, labels: dict[str, str], **term: Any) -> core.Pod:
    """A pod with these labels and one required term."""
    required = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "a"}}, **term}
    affinity = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [required]}}
    made = pod(name, affinity=affinity)
    made.metadata.labels.update(labels)
    return made


async def test_a_revision_keeps_apart_and_waits_until_the_other_pod_goes(cluster: Cluster) -> None:
    """matchLabelKeys: only pods of the same revision keep apart."""
    await start(cluster)

    def revision(name: str, hash_: str) -> core.Pod:
        return affine(name, "podAntiAffinity", {"app": "a", "hash": hash_}, matchLabelKeys=["hash"])

    async with cluster.client() as client:
        await client.create(node("n1", labels={ZONE: "a"}))
        await client.create(revision("old", "1"))
        assert await bound(client, "old") == "n1"
        await client.create(revision("new", "2"))
        assert await bound(client, "new") == "n1"
        await client.create(revision("next", "2"))
        found = await pod_when(client, "next", lambda p: scheduled_condition(p) is not None)
        condition = scheduled_condition(found)
        assert condition is not None
        assert condition.message.startswith(
            "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules."
        )
        await client.delete(kinds.POD, "new", "default", grace_period_seconds=0)
        assert await bound(client, "next") == "n1"


async def test_namespaces_are_known_by_their_labels(cluster: Cluster) -> None:
    await start(cluster)
    async with cluster.client() as client:
        for name, zone in (("n1", "a"), ("n2", "b")):
            await client.create(node(name, labels={ZONE: zone}))
        namespace = core.Namespace(metadata=meta.ObjectMeta(name="other"))
        namespace.metadata.labels["team"] = "b"
        await client.create(namespace)
        anchor = pod("anchor", nodeSelector={ZONE: "b"})
        anchor.metadata.namespace = "other"
        anchor.metadata.labels["app"] = "a"
        await client.create(anchor)
        near = {"namespaceSelector": {"matchLabels": {"team": "b"}}}
        # The scheduler may see a pod before it sees the namespace or the anchor's node.
        chosen = ""
        for index in range(100):
            name = f"p{index}"
            await client.create(affine(name, "podAffinity", {}, **near))
            found = await pod_when(
                client, name, lambda p: bool(p.spec.nodeName) or scheduled_condition(p) is not None
            )
            chosen = found.spec.nodeName
            if chosen:
                break
        assert chosen == "n2"
