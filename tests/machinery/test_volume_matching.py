"""The scheduler and the volume controllers match claims with volumes by the same rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from nominee.controllers.volumes.binding import ClaimView, best_match
from nominee.machinery.api.pb import core
from nominee.machinery.api.selectors import SelectorError
from nominee.machinery.scheduling.volume_matching import BETA_STORAGE_CLASS, bound_copy
from nominee.machinery.wire import codec
from nominee.scheduler.plugins.volume_binding.candidates import candidates


def claim(annotations: dict[str, str] | None = None, **spec: Any) -> core.PersistentVolumeClaim:
    document = {
        "metadata": {"name": "data", "namespace": "default", "uid": "u1", "annotations": annotations or {}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "fast",
            **spec,
        },
    }
    return codec.from_json(core.PersistentVolumeClaim, document)


def volume(
    name: str = "pv",
    *,
    annotations: dict[str, str] | None = None,
    size: str = "1Gi",
    deleted: bool = False,
    phase: str = "Available",
    **spec: Any,
) -> core.PersistentVolume:
    metadata: dict[str, Any] = {"name": name, "labels": {"disk": "ssd"}, "annotations": annotations or {}}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    document = {
        "metadata": metadata,
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": size},
            "storageClassName": "fast",
            **spec,
        },
        "status": {"phase": phase},
    }
    return codec.from_json(core.PersistentVolume, document)


MINE = {"namespace": "default", "name": "data", "uid": "u1"}
BY_NAME = {"namespace": "default", "name": "data"}
OTHER = {"namespace": "default", "name": "other", "uid": "u2"}
IN_SSD = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
INVALID = {"matchExpressions": [{"key": "disk", "operator": "Near", "values": ["ssd"]}]}


@pytest.mark.parametrize(
    ("of", "volumes", "chosen"),
    [
        (claim(), [volume()], "pv"),
        (claim(), [volume("large", size="3Gi"), volume("small", size="2Gi")], "small"),
        (claim(), [volume(size="500Mi")], None),
        (claim(), [volume(phase="Pending")], None),
        (claim(), [volume(deleted=True)], None),
        (claim(), [volume(claimRef=OTHER)], None),
        (claim(accessModes=["ReadWriteMany"]), [volume()], None),
        (claim(), [volume(accessModes=["ReadWriteOnce", "ReadOnlyMany"])], "pv"),
        (claim(volumeMode="Block"), [volume()], None),
        (claim(volumeMode="Filesystem"), [volume()], "pv"),
        (claim(selector=IN_SSD), [volume()], "pv"),
        (claim(selector={"matchLabels": {"disk": "hdd"}}), [volume()], None),
        # The class: the beta annotation wins over the field, on either side, also when it is empty.
        (claim(storageClassName="slow"), [volume()], None),
        (claim({BETA_STORAGE_CLASS: "fast"}, storageClassName="slow"), [volume()], "pv"),
        (claim(), [volume(annotations={BETA_STORAGE_CLASS: "fast"}, storageClassName="slow")], "pv"),
        (claim(), [volume(annotations={BETA_STORAGE_CLASS: "slow"})], None),
        (claim({BETA_STORAGE_CLASS: ""}), [volume()], None),
        (claim({BETA_STORAGE_CLASS: ""}), [volume(storageClassName="")], "pv"),
        # The VolumeAttributesClass must be the same, also when only the volume has one.
        (claim(volumeAttributesClassName="gold"), [volume(volumeAttributesClassName="gold")], "pv"),
        (claim(volumeAttributesClassName="gold"), [volume()], None),
        (claim(), [volume(volumeAttributesClassName="gold")], None),
        (claim(volumeAttributesClassName=""), [volume()], "pv"),
        # A prebound volume: phase and labels do not count; size, mode, class of attributes and deletion do.
        (claim(), [volume("free"), volume("mine", claimRef=MINE, size="9Gi")], "mine"),
        (claim(), [volume("mine", claimRef=BY_NAME, phase="Pending")], "mine"),
        (claim(selector={"matchLabels": {"disk": "hdd"}}), [volume("mine", claimRef=MINE)], "mine"),
        (claim(), [volume("free"), volume("mine", claimRef=MINE, size="500Mi")], "free"),
        (claim(), [volume("mine", claimRef=MINE, volumeMode="Block")], None),
        (claim(), [volume("mine", claimRef=MINE, volumeAttributesClassName="gold")], None),
        (claim(), [volume("mine", claimRef=MINE, deleted=True)], None),
        (claim(), [volume("mine", claimRef={**BY_NAME, "uid": "older"})], None),
    ],
)
def test_scheduler_and_controller_choose_the_same_volume(
    of: core.PersistentVolumeClaim, volumes: Sequence[core.PersistentVolume], chosen: str | None
) -> None:
    for_scheduler = candidates(of, volumes)
    assert [v.metadata.name for v in for_scheduler[:1]] == ([] if chosen is None else [chosen])
    for_controller = best_match(ClaimView(of, None, None, volumes))
    assert (None if for_controller is None else for_controller.metadata.name) == chosen


def test_an_invalid_selector_is_an_error_for_both() -> None:
    of = claim(selector=INVALID)
    for volumes in ([], [volume()], [volume("mine", claimRef=MINE)]):
        with pytest.raises(SelectorError):
            candidates(of, volumes)
        with pytest.raises(SelectorError):
            best_match(ClaimView(of, None, None, volumes))


def test_the_controller_prefers_volumes_with_fewer_access_modes() -> None:
    """They are searched first, so that a larger one with fewer modes wins (findByClaim)."""
    both = volume("both", accessModes=["ReadWriteOnce", "ReadOnlyMany"])
    one = volume("one", size="5Gi")
    found = best_match(ClaimView(claim(), None, None, [both, one]))
    assert found is one
    assert candidates(claim(), [both, one]) == [both, one]


def test_access_modes_of_a_prebound_volume_count_for_the_controller_only() -> None:
    mine = volume("mine", claimRef=MINE)
    of = claim(accessModes=["ReadWriteMany"])
    assert candidates(of, [mine]) == [mine]
    assert best_match(ClaimView(of, None, None, [mine])) is None


def test_a_bound_copy_refers_to_the_claim() -> None:
    free, by_name, mine = volume(), volume(claimRef=BY_NAME), volume(claimRef=MINE)
    assert bound_copy(mine, claim()) is mine
    assert bound_copy(by_name, claim()).spec.claimRef.uid == "u1"
    assert "pv.kubernetes.io/bound-by-controller" not in bound_copy(by_name, claim()).metadata.annotations
    assert bound_copy(free, claim()).metadata.annotations["pv.kubernetes.io/bound-by-controller"] == "yes"
    assert not free.spec.HasField("claimRef")
