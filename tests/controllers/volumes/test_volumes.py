"""Binding and provisioning as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from nominee.controllers.volumes import annotations as names
from nominee.controllers.volumes.binding import ClaimView, best_match, next_claim_step, next_volume_step
from nominee.controllers.volumes.pod_claims import uses, waits_with
from nominee.controllers.volumes.provisioning import (
    Decision,
    GiveUp,
    Nothing,
    ParameterError,
    Parameters,
    Provision,
    Refuse,
    decide,
)
from nominee.controllers.volumes.steps import (
    RecordEvent,
    Step,
    Update,
)
from nominee.machinery.api.pb import core, storage
from nominee.machinery.scheduling.volume_matching import (
    BETA_STORAGE_CLASS,
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    SELECTED_NODE,
)
from tests.controllers.builders import claim, node, pod, storage_class, volume

DELAYED = names.DELAYED_PROVISIONER
MINE = {"name": "data", "uid": "u1"}
OURS = {
    names.STORAGE_PROVISIONER: DELAYED,
    names.BETA_STORAGE_PROVISIONER: DELAYED,
}
CHOSEN = {**OURS, SELECTED_NODE: "n1"}
OLDER = {"name": "data", "uid": "older"}
VOLUMES = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
STATIC = storage_class(wait=False, provisioner=NO_PROVISIONER)


def _view(
    of: core.PersistentVolumeClaim,
    storage_class: storage.StorageClass | None = None,
    volumes: Sequence[core.PersistentVolume] = (),
) -> ClaimView:
    named = next((v for v in volumes if v.metadata.name == of.spec.volumeName), None)
    return ClaimView(of, storage_class, named, volumes)


@pytest.mark.parametrize(
    ("volumes", "chosen"),
    [
        ([], None),
        ([volume("a"), volume("b", size="500Mi")], "a"),
        ([volume("big", size="3Gi"), volume("small", size="2Gi")], "small"),
        ([volume("b"), volume("a")], "a"),
        ([volume("a", class_name="other")], None),
        ([volume("a", phase="Pending")], None),
        ([volume("a", phase="Released")], None),
        ([volume("a", claim_ref={"name": "other", "uid": "u2"})], None),
        ([volume("a"), volume("mine", claim_ref={"name": "data"}, size="9Gi")], "mine"),
        ([volume("a", claim_ref=OLDER)], None),
    ],
)
def test_which_volume_fits(volumes: list[core.PersistentVolume], chosen: str | None) -> None:
    found = best_match(_view(claim(uid="u1"), STATIC, volumes))
    assert (found.metadata.name if found is not None else None) == chosen


def test_free_volumes_of_a_waiting_class_are_the_schedulers() -> None:
    assert best_match(_view(claim(uid="u1"), storage_class(), [volume("a")])) is None
    prebound = volume("a", claim_ref=MINE)
    assert best_match(_view(claim(uid="u1"), storage_class(), [prebound])) is prebound


def _claim_of(step: Step | None, name: str) -> core.PersistentVolumeClaim:
    """Return the claim that a step of this name updates."""
    assert isinstance(step, Update)
    assert (str(step), type(step.obj)) == (name, core.PersistentVolumeClaim)
    return cast("core.PersistentVolumeClaim", step.obj)


def _binding_steps(of: core.PersistentVolumeClaim, bound_to: core.PersistentVolume) -> list[str]:
    """Perform the steps as an API server would, and name them."""
    steps: list[str] = []
    for _ in range(10):
        step = next_claim_step(_view(of, STATIC, [bound_to]))
        if step is None:
            return steps
        steps.append(str(step))
        match step:
            case Update(core.PersistentVolumeClaim() as new):
                of = new
            case Update(core.PersistentVolume() as changed):
                bound_to = changed
            case _:
                return steps
    raise AssertionError(f"no end: {steps}")


@pytest.mark.parametrize(
    ("of", "bound_to", "steps"),
    [
        (claim(uid="u1"), volume(claim_ref=MINE, phase="Pending"),
         ["UpdateVolumeStatus", "UpdateClaim", "UpdateClaimStatus"]),
        (claim(uid="u1"), volume(),
         ["UpdateVolume", "UpdateVolumeStatus", "UpdateClaim", "UpdateClaimStatus"]),
        (claim(uid="u1", volume="pv"), volume(),
         ["UpdateVolume", "UpdateVolumeStatus", "UpdateClaim", "UpdateClaimStatus"]),
        (claim(uid="u1", volume="pv", annotations={BIND_COMPLETED: "yes"}),
         volume(claim_ref=MINE, phase="Bound"), ["UpdateClaimStatus"]),
        (claim(uid="u1", volume="gone", annotations={BIND_COMPLETED: "yes"}), volume(),
         ["UpdateClaimStatus"]),  # Lost
    ],
)  # fmt: skip
def test_the_steps_of_a_binding(
    of: core.PersistentVolumeClaim, bound_to: core.PersistentVolume, steps: list[str]
) -> None:
    assert _binding_steps(of, bound_to) == steps


def _changed(of: core.PersistentVolume, **spec: str) -> core.PersistentVolume:
    for name, value in spec.items():
        setattr(of.spec, name, value)
    return of


def _leaving() -> core.PersistentVolume:
    of = volume()
    of.metadata.deletionTimestamp.seconds = 1
    return of


@pytest.mark.parametrize(
    ("asked", "reason", "note"),
    [
        (volume(claim_ref={"name": "other", "uid": "u2"}), "FailedBinding",
         'volume "pv" already bound to a different claim.'),
        (volume(claim_ref=OLDER), "FailedBinding", 'volume "pv" already bound to a different claim.'),
        (_leaving(), "VolumeMismatch",
         'Cannot bind to requested volume "pv": the volume is marked for deletion "pv"'),
        (volume(size="1023Mi"), "VolumeMismatch",
         'Cannot bind to requested volume "pv": requested PV is too small'),
        (volume(class_name=""), "VolumeMismatch",
         'Cannot bind to requested volume "pv": storageClassName does not match'),
        (_changed(volume(), volumeAttributesClassName="gold"), "VolumeMismatch",
         'Cannot bind to requested volume "pv": volumeAttributesClassName does not match'),
        (_changed(volume(), volumeMode="Block"), "VolumeMismatch",
         'Cannot bind to requested volume "pv": incompatible volumeMode'),
    ],
)  # fmt: skip
def test_a_claim_is_not_bound_to_a_volume_that_it_asks_for_and_that_does_not_suit_it(
    asked: core.PersistentVolume, reason: str, note: str
) -> None:
    step = next_claim_step(_view(claim(uid="u1", volume="pv"), STATIC, [asked]))
    assert isinstance(step, RecordEvent)
    assert (step.type, step.reason, step.note, step.again_seconds) == ("Warning", reason, note, 15.0)


def test_a_claim_is_not_bound_to_a_volume_without_its_access_mode() -> None:
    of = claim(uid="u1", volume="pv")
    of.spec.accessModes.append("ReadWriteMany")
    step = next_claim_step(_view(of, STATIC, [volume()]))
    assert isinstance(step, RecordEvent)
    assert step.note == 'Cannot bind to requested volume "pv": incompatible accessMode'


def _of_class(name: str) -> core.PersistentVolume:
    of = volume(claim_ref=MINE, phase="Bound", size="2Gi")
    of.spec.volumeAttributesClassName = name
    return of


def _bound_status(phase: str, capacity: str = "", attributes: str = "") -> core.PersistentVolumeClaim:
    of = claim(uid="u1", volume="pv", phase=phase, annotations={BIND_COMPLETED: "yes"})
    of.status.accessModes.append("ReadWriteOnce")
    if capacity:
        of.status.capacity["storage"].string = capacity
    if attributes:
        of.status.currentVolumeAttributesClassName = attributes
    return of


@pytest.mark.parametrize(
    ("of", "bound_to", "status"),
    [
        (_bound_status("Pending"), _of_class("gold"), ("Bound", "2Gi", "gold")),
        (_bound_status("Pending", attributes="old"), volume(claim_ref=MINE, phase="Bound"),
         ("Bound", "1Gi", "")),
        # Once bound they belong to who resizes and modifies the volume.
        (_bound_status("Bound", "1Gi", "silver"), _of_class("gold"), None),
        (_bound_status("Lost"), _of_class("gold"), ("Bound", "2Gi", "")),
    ],
)  # fmt: skip
def test_what_a_claim_takes_from_its_volume(
    of: core.PersistentVolumeClaim, bound_to: core.PersistentVolume, status: tuple[str, str, str] | None
) -> None:
    step = next_claim_step(_view(of, STATIC, [bound_to]))
    if status is None:
        assert step is None
        return
    new = _claim_of(step, "UpdateClaimStatus").status
    assert (new.phase, new.capacity["storage"].string, new.currentVolumeAttributesClassName) == status
    assert new.HasField("currentVolumeAttributesClassName") == bool(status[2])


@pytest.mark.parametrize(
    ("named", "bound_to", "reason", "note"),
    [
        ("", volume(), "ClaimLost",
         "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"),
        ("gone", volume(), "ClaimLost",
         "Bound claim has lost its PersistentVolume. Data on the volume is lost!"),
        ("pv", volume(claim_ref=OLDER), "ClaimMisbound",
         "Two claims are bound to the same volume, this one is bound incorrectly"),
    ],
)  # fmt: skip
def test_a_claim_that_lost_its_volume(
    named: str, bound_to: core.PersistentVolume, reason: str, note: str
) -> None:
    of = _bound_status("Bound", "1Gi", "gold")
    of.spec.volumeName = named
    step = next_claim_step(_view(of, STATIC, [bound_to]))
    lost = _claim_of(step, "UpdateClaimStatus")
    assert lost.status == core.PersistentVolumeClaimStatus(phase="Lost")
    assert isinstance(step, Update)
    assert step.event is not None
    assert (step.event.type, step.event.reason, step.event.note) == ("Warning", reason, note)
    assert next_claim_step(_view(lost, STATIC, [bound_to])) is None


def test_a_volume_that_came_unbound_is_bound_again() -> None:
    step = next_claim_step(_view(_bound_status("Bound", "1Gi"), STATIC, [volume()]))
    assert isinstance(step, Update)
    assert str(step) == "UpdateVolume"
    assert cast("core.PersistentVolume", step.obj).spec.claimRef.uid == "u1"


@pytest.mark.parametrize(
    ("of", "storage_class", "reason"),
    [
        (claim(uid="u1"), storage_class(), "WaitForFirstConsumer"),
        (claim(uid="u1", class_name=""), None, "FailedBinding"),
        (claim(uid="u1", class_name="none"), None, "ProvisioningFailed"),
        (claim(uid="u1", annotations=OURS), storage_class(wait=False), "ExternalProvisioning"),
        (
            claim(uid="u1", annotations=CHOSEN),
            storage_class(),
            "ExternalProvisioning",
        ),
    ],
)
def test_the_event_of_a_claim_without_a_volume(
    of: core.PersistentVolumeClaim, storage_class: storage.StorageClass | None, reason: str
) -> None:
    step = next_claim_step(_view(of, storage_class))
    assert isinstance(step, RecordEvent)
    assert (step.reason, step.again_seconds) == (reason, 15.0)


@pytest.mark.parametrize(
    ("of", "volumes", "default", "given"),
    [
        (claim(uid="u1", class_name=None), [], "fast", "fast"),
        (claim(uid="u1", class_name=None), [], "", None),
        (claim(uid="u1", class_name=""), [], "fast", None),
        (claim(uid="u1", class_name=None, annotations={BETA_STORAGE_CLASS: ""}), [], "fast", None),
        (claim(uid="u1", class_name=None), [volume("a", class_name="")], "fast", None),
    ],
    ids=["no class", "no default", "the empty class", "the annotation", "a volume fits"],
)
def test_a_claim_without_a_class_gets_the_default_one(
    of: core.PersistentVolumeClaim, volumes: list[core.PersistentVolume], default: str, given: str | None
) -> None:
    step = next_claim_step(ClaimView(of, None, None, volumes, default_class=default))
    is_update = str(step) == "UpdateClaim"
    assert (_claim_of(step, "UpdateClaim").spec.storageClassName if is_update else None) == given


@pytest.mark.parametrize(
    ("pods", "note"),
    [
        (["a"], "waiting for pod a to be scheduled"),
        (["b", "a"], "waiting for pods a,b to be scheduled"),
    ],
)
def test_a_claim_waits_for_its_pods_node(pods: list[str], note: str) -> None:
    step = next_claim_step(ClaimView(claim(uid="u1"), storage_class(), None, [], pods))
    assert isinstance(step, RecordEvent)
    assert (step.reason, step.note) == ("WaitForPodScheduled", note)


def test_a_pod_waits_with_its_claims_until_it_has_a_node() -> None:
    assert waits_with(pod(volumes=VOLUMES)) == ["default/data"]
    assert waits_with(pod(volumes=VOLUMES, node="n1")) == []


def test_a_provisioner_is_asked_by_name() -> None:
    step = next_claim_step(_view(claim(uid="u1", annotations={SELECTED_NODE: "n1"}), storage_class()))
    assert dict(_claim_of(step, "UpdateClaim").metadata.annotations) == CHOSEN
    step = next_claim_step(_view(claim(uid="u1"), STATIC))
    assert isinstance(step, RecordEvent)
    assert (step.type, step.reason) == ("Warning", "ProvisioningFailed")
    assert step.note == "no volume plugin matched name: kubernetes.io/no-provisioner"


BOUND = claim(uid="u1", volume="pv", phase="Bound")


@pytest.mark.parametrize(
    ("of", "its_claim", "step", "phase"),
    [
        (volume(phase="Pending"), None, "UpdateVolumeStatus", "Available"),
        (volume(phase="Available"), None, None, ""),
        (volume(phase="Pending", claim_ref={"name": "data"}), None, "UpdateVolumeStatus", "Available"),
        (volume(phase="Bound", claim_ref=MINE), BOUND, None, ""),
        (volume(phase="Pending", claim_ref=MINE), BOUND, None, ""),
        (volume(phase="Bound", claim_ref=MINE), None, "UpdateVolumeStatus", "Released"),
        (volume(phase="Bound", claim_ref=OLDER), BOUND, "UpdateVolumeStatus", "Released"),
        (volume(phase="Released", claim_ref=MINE), None, None, ""),
        (volume(phase="Released", claim_ref=MINE, provisioned_by=DELAYED), None, "DeleteVolume", ""),
        (volume(phase="Released", claim_ref=MINE, provisioned_by=DELAYED, policy="Retain"),
         None, None, ""),
        (volume("made", phase="Bound", claim_ref=MINE, provisioned_by=DELAYED), BOUND,
         "UpdateVolumeStatus", "Released"),
        (volume("made", phase="Released", claim_ref=MINE, provisioned_by=DELAYED), BOUND,
         "DeleteVolume", ""),
        (volume("kept", phase="Bound", claim_ref=MINE, provisioned_by=DELAYED, policy="Retain"), BOUND,
         "UpdateVolume", "Bound"),
        (volume("other", phase="Bound", claim_ref=MINE), BOUND, "UpdateVolume", "Bound"),
    ],
)  # fmt: skip
def test_the_phase_of_a_volume(
    of: core.PersistentVolume, its_claim: core.PersistentVolumeClaim | None, step: str | None, phase: str
) -> None:
    found = next_volume_step(of, its_claim)
    assert (None if found is None else str(found)) == step
    if isinstance(found, Update):
        assert found.obj.status.phase == phase


def test_a_volume_is_free_again_whose_claim_has_another_one() -> None:
    chosen = volume("other", claim_ref=MINE)
    chosen.metadata.annotations[BOUND_BY_CONTROLLER] = "yes"
    free = next_volume_step(chosen, BOUND)
    assert isinstance(free, Update)
    assert isinstance(free.obj, core.PersistentVolume)
    assert not free.obj.spec.HasField("claimRef")
    assert BOUND_BY_CONTROLLER not in free.obj.metadata.annotations
    reserved = next_volume_step(volume("other", claim_ref=MINE), BOUND)
    assert isinstance(reserved, Update)
    assert isinstance(reserved.obj, core.PersistentVolume)
    assert (reserved.obj.spec.claimRef.name, reserved.obj.spec.claimRef.uid) == ("data", "")


@pytest.mark.parametrize(
    ("of", "storage_class", "at", "exists", "decision"),
    [
        (claim(uid="u1", annotations=OURS), storage_class(), None, False, Nothing),  # no node is selected
        (claim(uid="u1", annotations=CHOSEN), storage_class(), node(), False, Provision),
        (claim(uid="u1", annotations=CHOSEN), storage_class(), None, False, GiveUp),
        (claim(uid="u1", annotations=CHOSEN), storage_class(), node(), True, Nothing),
        (claim(uid="u1", annotations=OURS), storage_class(wait=False), None, False, Provision),
        (claim(uid="u1"), storage_class(wait=False), None, False, Nothing),  # no provisioner was asked
        (claim(uid="u1", annotations=OURS), storage_class(wait=False, provisioner="x"), None, False, Nothing),
        (claim(uid="u1", annotations=OURS, volume="pv"), storage_class(wait=False), None, False, Nothing),
        (claim(uid="u1", annotations=OURS), None, None, False, Nothing),
        (claim(uid="u1", annotations=OURS), storage_class(wait=False, delay="soon"), None, False, Refuse),
    ],
)  # fmt: skip
def test_what_the_provisioner_does(
    of: core.PersistentVolumeClaim,
    storage_class: storage.StorageClass | None,
    at: core.Node | None,
    exists: bool,
    decision: type[Decision],
) -> None:
    assert type(decide(of, storage_class, at, volume_exists=exists)) is decision


def test_a_claim_is_given_up_without_its_node() -> None:
    of = claim(uid="u1", annotations=CHOSEN)
    decision = decide(of, storage_class(), None, volume_exists=False)
    assert isinstance(decision, GiveUp)
    assert dict(decision.claim.metadata.annotations) == OURS
    assert SELECTED_NODE in of.metadata.annotations  # the shared object is as it was


@pytest.mark.parametrize(
    ("topology", "labels", "tied"),
    [
        ("node", {}, ("kubernetes.io/hostname", "n1")),
        ("zone", {"topology.kubernetes.io/zone": "z"}, ("topology.kubernetes.io/zone", "z")),
        ("zone", {}, None),
        ("none", {}, None),
    ],
)
def test_where_a_volume_can_be_reached(
    topology: str, labels: Mapping[str, str], tied: tuple[str, str] | None
) -> None:
    of = claim(uid="u1", annotations=CHOSEN)
    decision = decide(of, storage_class(topology=topology), node(labels=labels), volume_exists=False)
    assert isinstance(decision, Provision)
    made = decision.volume
    assert made.metadata.name == "pvc-u1"
    assert made.spec.claimRef.uid == "u1"
    terms = made.spec.nodeAffinity.required.nodeSelectorTerms
    found = [(e.key, *e.values) for term in terms for e in term.matchExpressions]
    assert found == ([tied] if tied else [])


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, Parameters(0.0, 0, "node")),
        ({"delay": "1m30s", "failures": "2"}, Parameters(90.0, 2, "node")),
        ({"delay": "x"}, "parameters.delay"),
        ({"failures": "-1"}, "parameters.failures"),
        ({"failures": "\u00b2"}, "parameters.failures"),
        ({"failures": "9" * 5000}, "parameters.failures"),
        ({"topology": "rack"}, "parameters.topology"),
        ({"colour": "red"}, "parameters.colour"),
    ],
)
def test_parameters(parameters: Mapping[str, str], expected: Parameters | str) -> None:
    of = storage_class()
    of.parameters.update(parameters)
    if isinstance(expected, Parameters):
        assert Parameters.of(of) == expected
    else:
        with pytest.raises(ParameterError, match=expected):
            Parameters.of(of)


@pytest.mark.parametrize(
    ("user", "in_use"),
    [
        (pod(node="n1", volumes=VOLUMES), True),
        (pod(volumes=VOLUMES), False),  # on no node yet
        (pod(node="n1", volumes=VOLUMES, phase="Succeeded"), True),  # until it is removed
        (pod(node="n1", volumes=VOLUMES, namespace="other"), False),
        (pod("data", node="n1", volumes=[{"name": "v", "ephemeral": {}}]), False),
        (pod("da", node="n1", volumes=[{"name": "ta", "ephemeral": {}}]), False),
        (pod(node="n1"), False),
    ],
)
def test_which_pods_protect_a_claim(user: core.Pod, in_use: bool) -> None:
    assert uses(user, claim()) is in_use


def test_an_ephemeral_volume_uses_the_claim_of_its_name() -> None:
    user = pod(node="n1", volumes=[{"name": "v", "ephemeral": {}}])
    assert uses(user, claim("p-v"))


def test_a_claim_may_have_a_delay_of_its_own() -> None:
    of = Parameters(90.0, 2, "node")
    made = claim()
    assert of.for_claim(made) == of
    made.metadata.annotations["nominee.dev/provisioning-delay"] = "250ms"
    assert of.for_claim(made) == Parameters(0.25, 2, "node")
    made.metadata.annotations["nominee.dev/provisioning-delay"] = "soon"
    with pytest.raises(ParameterError, match="annotation nominee"):
        of.for_claim(made)


def test_a_bound_claim_is_lost_if_its_volume_is_only_reserved_for_it() -> None:
    bound = claim(uid="u1", volume="pv", phase="Bound", annotations={BIND_COMPLETED: "yes"})
    step = next_claim_step(_view(bound, volumes=[volume(claim_ref={"name": "data"})]))
    assert isinstance(step, Update)
    assert (step.obj.status.phase, step.event and step.event.reason) == ("Lost", "ClaimMisbound")


def test_a_claim_that_is_being_deleted_is_bound() -> None:
    deleted = claim(uid="u1")
    deleted.metadata.deletionTimestamp.seconds = 1
    assert str(next_claim_step(_view(deleted, STATIC, [volume()]))) == "UpdateVolume"
