"""A scheduler binds a pod to a node that suits it, with all that the pod mounts and uses."""

from __future__ import annotations

from google.protobuf.message import Message

from nominee.lab.history.invariants.check import Check
from nominee.lab.history.invariants.checking.answers import Answer, Method, Outcome
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.pod_rules.sound_bindings import SoundBindings
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core, devices, workloads
from nominee.machinery.scheduling.volume_matching import SELECTED_NODE
from tests.lab.invariants.histories import History, node, pod

SECONDS = [node("other")] * 20
ZONE = "topology.kubernetes.io/zone"


def bound(found: core.Pod) -> core.Pod:
    """Return the pod on its node."""
    on_node = copy_of(found)
    on_node.spec.nodeName = "n1"
    return on_node


def problems_of(
    found: core.Pod,
    *objects: Message,
    late: Message | None = None,
    after: Message | None = None,
    removed: Message | None = None,
    again: core.Pod | None = None,
    seconds: list[core.Node] = SECONDS,
    absent: int = 0,
) -> list[str]:
    """Return the problems of a pod's binding to n1, long after the objects were written, and `late` was.

    `after` is written between the binding and its answer, `removed` is deleted some seconds before it,
    and the pod perhaps created `again`. For `absent` seconds nothing is written before the binding.
    """
    history = History().put(*objects, found, *SECONDS)
    if removed is not None:
        history.delete(removed).put(*([again] if again is not None else []), *seconds)
    history.put(*([late] if late is not None else [])).wait(absent).put(bound(found))
    history.put(*([after] if after is not None else []))
    check = Check(ComponentSettings(observes_answers=True), [SoundBindings.about.name])
    for revision in history.revisions:
        check.observe(revision)
    end = history.revisions[-1]
    check.observe_answer(
        Answer(
            client="scheduler",
            method=Method.UPDATE,
            outcome=Outcome.DONE,
            kind=kinds.POD,
            namespace="default",
            name="p",
            begin=end.revision - 1,
            end=end.revision,
            uid=found.metadata.uid,
            node="n1",
            begin_time=end.time,
        )
    )
    (result,) = check.finish(Evidence(now=history.now))
    assert result.checked == 1
    return [violation.message for violation in result.violations]


def labelled(zone: str) -> core.Node:
    found = node("n1")
    found.metadata.labels[ZONE] = zone
    return found


def test_nodes() -> None:
    assert problems_of(pod("p"), node("n1")) == []
    tainted = node("n1", taints=["full"])
    assert problems_of(pod("p"), tainted) == [
        "the pod was bound to node 'n1', whose taint full it does not tolerate"
    ]
    assert problems_of(pod("p"), node("n1"), late=tainted) == []
    # While no API server ran the scheduler saw no change.
    assert problems_of(pod("p"), node("n1"), late=tainted, absent=65) == []
    assert len(problems_of(pod("p"), tainted, absent=65)) == 1
    assert problems_of(pod("p", nominated="n1"), node("n1"), tainted) == []
    assert len(problems_of(pod("p", nominated="n1"), tainted)) == 1
    tolerant, selective = pod("p"), pod("p")
    tolerant.spec.tolerations.add(operator="Exists")
    assert problems_of(tolerant, tainted) == []
    selective.spec.nodeSelector[ZONE] = "a"
    assert problems_of(selective, labelled("a")) == []
    (problem,) = problems_of(selective, labelled("b"))
    assert problem.endswith("which its node selector or affinity excludes")


def test_gates() -> None:
    gated = pod("p")
    gated.spec.schedulingGates.add(name="wait")
    assert problems_of(gated, node("n1")) == ["the pod was bound, and has scheduling gates"]


def claim(*, uid: str = "", zone: str = "") -> devices.ResourceClaim:
    """Return a claim, allocated and reserved for the pod of a uid."""
    found = devices.ResourceClaim()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = "c", "default", "uid-c"
    if uid:
        found.status.allocation.SetInParent()
        found.status.reservedFor.add(resource="pods", name="p", uid=uid)
    if zone:
        _zone(found.status.allocation.nodeSelector, zone)
    return found


def _zone(selector: core.NodeSelector, zone: str) -> None:
    selector.nodeSelectorTerms.add().matchExpressions.add(key=ZONE, operator="In", values=[zone])


def test_claims() -> None:
    uses = pod("p")
    uses.spec.resourceClaims.add(name="gpu", resourceClaimName="c")
    assert problems_of(uses, labelled("a"), claim(uid="uid-p", zone="a")) == []
    start = "the pod was bound to node 'n1', and its claim "
    assert problems_of(uses, labelled("a"), claim()) == [f"{start}'gpu' is not allocated"]
    others = claim(uid="uid-q")
    assert problems_of(uses, labelled("a"), others) == [f"{start}c is not reserved for it"]
    reserved = claim(uid="uid-p")
    assert problems_of(uses, labelled("a"), reserved, removed=reserved, seconds=[]) == []
    assert problems_of(uses, labelled("a"), reserved, removed=reserved) == [f"{start}'gpu' is not allocated"]
    assert problems_of(uses, labelled("a"), claim(), removed=claim(), seconds=[]) != []
    former = pod("p", uid="former")
    assert problems_of(uses, labelled("a"), others, former, removed=former, seconds=[], again=uses) == []
    assert problems_of(uses, labelled("a"), others, former, removed=former, again=uses) != []
    assert problems_of(uses, labelled("a"), claim(uid="uid-p", zone="b")) == [
        f"{start}c has devices that the node does not reach"
    ]


def test_a_pod_that_ends_before_its_binding_is_answered() -> None:
    found = pod("p")
    found.spec.resourceClaims.add(name="gpu", resourceClaimName="gpu")
    assert problems_of(found, node("n1"))
    ended = bound(found)
    ended.status.phase = "Succeeded"
    assert problems_of(found, node("n1"), after=ended) == []


def test_volumes() -> None:
    mounts = pod("p")
    mounts.spec.volumes.add(name="data").volumeSource.persistentVolumeClaim.claimName = "c"
    wants, volume = core.PersistentVolumeClaim(), core.PersistentVolume()
    wants.metadata.name, wants.metadata.namespace, wants.metadata.uid = "c", "default", "uid-c"
    wants.spec.volumeName = volume.metadata.name = "v"
    unbound = ["the pod was bound to node 'n1', and its volume claim c is not bound on both sides"]
    assert problems_of(mounts, labelled("a"), wants) == unbound
    assert problems_of(mounts, labelled("a"), wants, volume) == unbound
    volume.spec.claimRef.uid = "uid-c"
    volume.spec.claimRef.namespace, volume.spec.claimRef.name = "default", "c"
    assert problems_of(mounts, labelled("a"), wants, volume) == []
    assert problems_of(mounts, labelled("a"), wants, volume, removed=volume) == unbound
    assert problems_of(mounts, labelled("a"), wants, volume, removed=volume, seconds=SECONDS[:3]) == []
    another = copy_of(volume)
    another.spec.claimRef.uid = "uid-d"
    assert problems_of(mounts, labelled("a"), wants, volume, late=another) == []
    assert problems_of(mounts, labelled("a"), wants, another, volume) == []
    assert problems_of(mounts, labelled("a"), wants, volume, another) == unbound
    _zone(volume.spec.nodeAffinity.required, "b")
    (problem,) = problems_of(mounts, labelled("a"), wants, volume)
    assert problem.endswith("its volume v is not where the node is")
    assert problems_of(mounts, labelled("a"), wants, volume, removed=wants) == unbound
    assert problems_of(mounts, labelled("a"), wants, volume, removed=wants, seconds=SECONDS[:3]) == []
    wants.spec.volumeName = ""
    assert problems_of(mounts, labelled("a"), wants, removed=wants, seconds=SECONDS[:3]) == unbound


def volume_in_a(mounts: core.Pod) -> tuple[core.PersistentVolumeClaim, core.PersistentVolume]:
    """Let a pod mount a claim; return it with its volume, which is in the zone a."""
    mounts.spec.volumes.add(name="data").volumeSource.persistentVolumeClaim.claimName = "c"
    wants, volume = core.PersistentVolumeClaim(), core.PersistentVolume()
    wants.metadata.name, wants.metadata.namespace, wants.metadata.uid = "c", "default", "uid-c"
    wants.spec.volumeName = volume.metadata.name = "v"
    volume.spec.claimRef.uid = "uid-c"
    _zone(volume.spec.nodeAffinity.required, "a")
    return wants, volume


def test_a_node_that_changed_does_not_reach_a_volume_or_devices() -> None:
    mounts, uses = pod("p"), pod("p")
    wants, volume = volume_in_a(mounts)
    assert problems_of(mounts, labelled("a"), wants, volume, late=labelled("b")) == []
    assert len(problems_of(mounts, labelled("a"), labelled("b"), wants, volume)) == 1
    uses.spec.resourceClaims.add(name="gpu", resourceClaimName="c")
    devices_in_a = claim(uid="uid-p", zone="a")
    assert problems_of(uses, labelled("a"), devices_in_a, late=labelled("b")) == []
    assert len(problems_of(uses, labelled("a"), labelled("b"), devices_in_a)) == 1


def test_a_node_that_never_suited() -> None:
    mounts = pod("p", nominated="n1")
    wants, volume = volume_in_a(mounts)
    tainted = labelled("b")
    tainted.spec.taints.add(key="x", effect="PreferNoSchedule")
    assert len(problems_of(mounts, wants, volume, labelled("b"), late=tainted)) == 1
    assert len(problems_of(mounts, wants, volume, late=labelled("b"))) == 1


def test_the_volume_of_a_former_claim() -> None:
    mounts, wants, volume = pod("p"), core.PersistentVolumeClaim(), core.PersistentVolume()
    mounts.spec.volumes.add(name="data").volumeSource.persistentVolumeClaim.claimName = "c"
    wants.metadata.name, wants.metadata.namespace, wants.metadata.uid = "c", "default", "uid-c"
    volume.metadata.name = "v"
    volume.spec.claimRef.uid, volume.spec.claimRef.name = "uid-former", "c"
    volume.spec.claimRef.namespace = "default"
    assert len(problems_of(mounts, labelled("a"), wants, volume, removed=volume, seconds=SECONDS[:3])) == 1


def test_a_taint_whose_value_changed() -> None:
    old, tolerant = node("n1", taints=["team"]), pod("p")
    old.spec.taints[0].value = "a"
    new = copy_of(old)
    new.spec.taints[0].value = "b"
    tolerant.spec.tolerations.add(key="team", operator="Equal", value="a", effect="NoSchedule")
    assert problems_of(tolerant, old, late=new) == []
    assert len(problems_of(tolerant, old, new)) == 1


def test_a_volume_that_comes_long_after_its_node_was_chosen() -> None:
    mounts, tainted = pod("p"), node("n1", taints=["full"])
    mounts.spec.volumes.add(name="data").volumeSource.persistentVolumeClaim.claimName = "c"
    wants, volume = core.PersistentVolumeClaim(), core.PersistentVolume()
    wants.metadata.name, wants.metadata.namespace, wants.metadata.uid = "c", "default", "uid-c"
    wants.metadata.annotations[SELECTED_NODE] = "n1"
    volume.metadata.name, volume.spec.claimRef.uid = "v", "uid-c"
    has = copy_of(wants)
    has.spec.volumeName = "v"
    assert problems_of(mounts, node("n1"), volume, wants, tainted, late=has) == []
    problem = "the pod was bound to node 'n1', whose taint full it does not tolerate"
    # The node was tainted before, the volume there before, another node selected, or by an earlier pod.
    assert problems_of(mounts, tainted, volume, *SECONDS, wants, late=has) == [problem]
    assert problems_of(mounts, node("n1"), volume, wants, tainted, has) == [problem]
    other = copy_of(has)
    other.metadata.annotations[SELECTED_NODE] = "n2"
    assert problems_of(mounts, node("n1"), volume, wants, tainted, late=other) == [problem]
    younger = copy_of(mounts)
    younger.metadata.creationTimestamp.seconds = 1 << 40
    assert problems_of(younger, node("n1"), volume, wants, tainted, late=has) == [problem]


def test_groups() -> None:
    member, group = pod("p"), workloads.PodGroup()
    member.spec.schedulingGroup.podGroupName = "g"
    group.metadata.name, group.metadata.namespace = "g", "default"
    group.spec.schedulingPolicy.gang.minCount = 2
    other = copy_of(member)
    other.metadata.name = other.metadata.uid = "q"
    assert problems_of(member, node("n1"), group, other) == []
    assert problems_of(member, node("n1"), group) == ["the pod was bound, and its group g has 1 pods only"]
