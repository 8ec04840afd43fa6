"""Volumes that the controller deletes itself, and those it cannot reclaim."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from nominee.controllers.volumes.binding import next_volume_step
from nominee.controllers.volumes.steps import Update
from nominee.machinery.api.pb import core
from tests.controllers.builders import volume

MINE = {"name": "data", "uid": "u1"}
FAILED = "UpdateVolumeStatus"
NO_PLUGIN = 'error getting deleter volume plugin for volume "pv": no volume plugin matched'
NO_DELETER = 'error getting deleter volume plugin for volume "pv": no deletable volume plugin matched'
NO_PATH = "host_path deleter only supports /tmp/.+ but received provided "


@pytest.mark.parametrize(
    ("source", "policy", "step", "reason", "message"),
    [
        ({"hostPath": {"path": "/tmp/a"}}, "Delete", "DeleteVolume", "", ""),
        ({"hostPath": {"path": "/mnt/tmp/a"}}, "Delete", "DeleteVolume", "", ""),
        ({"hostPath": {"path": "/tmp/"}}, "Delete", FAILED, "VolumeFailedDelete", NO_PATH + "/tmp/"),
        ({"nfs": {"server": "s", "path": "/"}}, "Delete", FAILED, "VolumeFailedDelete", NO_DELETER),
        ({"local": {"path": "/a"}}, "Delete", FAILED, "VolumeFailedDelete", NO_PLUGIN),
        ({"cinder": {"volumeID": "v"}}, "Delete", None, "", ""),
        ({"local": {"path": "/a"}}, "Retain", None, "", ""),
        ({"local": {"path": "/a"}}, "Recycle", FAILED, "VolumeFailedRecycle",
         "No recycler plugin found for the volume!"),
        ({"nfs": {"server": "s", "path": "/"}}, "Recycle", None, "", ""),
    ],
)  # fmt: skip
def test_a_volume_that_the_controller_cannot_reclaim_has_failed(
    source: Mapping[str, object], policy: str, step: str | None, reason: str, message: str
) -> None:
    released = volume(phase="Released", claim_ref=MINE, policy=policy, source=source)
    found = next_volume_step(released, None)
    assert (None if found is None else str(found)) == step
    if isinstance(found, Update):
        assert isinstance(found.obj, core.PersistentVolume)
        assert (found.obj.status.phase, found.obj.status.message) == ("Failed", message)
        assert found.event is not None
        assert (found.event.reason, found.event.note) == (reason, message)
        assert next_volume_step(found.obj, None) is None


def test_a_volume_that_failed_and_loses_its_claim_is_available_without_a_message() -> None:
    failed = volume(phase="Failed")
    failed.status.message = NO_PLUGIN
    step = next_volume_step(failed, None)
    assert isinstance(step, Update)
    assert isinstance(step.obj, core.PersistentVolume)
    assert (step.obj.status.phase, step.obj.status.message) == ("Available", "")
