"""A volume claim, a volume or a resource claim stays while it is used."""

from __future__ import annotations

from nominee.lab.history.invariants.claims.protected_claims import ProtectedClaims
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core, devices
from tests.lab.invariants.histories import History, node, pod, result_of, violations_of

SECONDS = [node("n1")] * 3


def user(*, on: str = "n1", phase: str = "Running") -> core.Pod:
    """Return a pod that mounts the claim."""
    found = pod("p", node=on, phase=phase)
    found.spec.volumes.add(name="data").volumeSource.persistentVolumeClaim.claimName = "c"
    return found


def claim(volume: str = "v") -> core.PersistentVolumeClaim:
    found = core.PersistentVolumeClaim()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = "c", "default", "uid-c"
    found.spec.volumeName = volume
    return found


def volume(phase: str = "Bound") -> core.PersistentVolume:
    found = core.PersistentVolume()
    found.metadata.name, found.metadata.uid = "v", "uid-v"
    found.spec.claimRef.name, found.spec.claimRef.uid = "c", "uid-c"
    found.status.phase = phase
    return found


def test_a_volume_claim() -> None:
    history = History().put(claim(), user(on="", phase="Pending"), user(), *SECONDS).delete(claim())
    (violation,) = violations_of(ProtectedClaims, history)
    assert violation.message == "it was removed, and Pod default/p uses it on node 'n1'"
    assert violation.objects == ("Pod default/p", "PersistentVolumeClaim default/c")
    ended = History().put(claim(), user(), user(phase="Succeeded"), *SECONDS).delete(claim())
    assert len(violations_of(ProtectedClaims, ended)) == 1
    gone = History().put(claim(), user(), *SECONDS).delete(user()).delete(claim())
    waits = History().put(claim(), user(on="", phase="Pending"), *SECONDS).delete(claim())
    for allowed in (gone, waits):
        assert violations_of(ProtectedClaims, allowed) == []
    ends = claim()
    ends.metadata.deletionTimestamp.seconds = 1
    late = result_of(ProtectedClaims, History().put(claim(), ends, user()).delete(ends))
    assert (late.violations, late.exceptions) == ((), {"bound-late": 1})


def test_a_volume() -> None:
    (violation,) = violations_of(ProtectedClaims, History().put(volume(), claim()).delete(volume()))
    assert violation.message == "it was removed, and the claim c has it"
    other = History().put(volume(), claim("other")).delete(volume())
    after = History().put(volume(), claim()).delete(claim()).delete(volume())
    reserved = History().put(volume("Available"), claim()).delete(volume("Available"))
    for allowed in (other, after, reserved):
        assert violations_of(ProtectedClaims, allowed) == []
    unwritten = History().put(volume("Available"), claim(), *SECONDS * 5).delete(volume("Available"))
    assert len(violations_of(ProtectedClaims, unwritten)) == 1


def test_a_resource_claim() -> None:
    reserved = devices.ResourceClaim()
    reserved.metadata.name, reserved.metadata.namespace = "r", "default"
    free = History().put(reserved, user(), *SECONDS).delete(reserved)
    assert violations_of(ProtectedClaims, free) == []
    reserved.status.reservedFor.add(resource="pods", name="p", uid="uid-p")
    assert violations_of(ProtectedClaims, History().put(reserved, user(), *SECONDS).delete(reserved))
    protected = copy_of(reserved)
    protected.metadata.finalizers.append("resource.kubernetes.io/delete-protection")
    under_way = History().put(user(), reserved, protected).delete(protected)
    assert violations_of(ProtectedClaims, under_way) == []
    later = History().put(user(), reserved, protected, *SECONDS).delete(protected)
    assert len(violations_of(ProtectedClaims, later)) == 1
