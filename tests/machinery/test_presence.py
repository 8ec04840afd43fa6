"""The fields that Go always writes, also in messages like those that were filled before."""

from __future__ import annotations

from nominee.machinery.api.pb import core
from nominee.machinery.wire import presence
from nominee.machinery.wire.codec import from_json

CONTAINER = {"name": "c", "image": "app", "resources": {"requests": {"cpu": "1"}}}
POD = {
    "metadata": {"name": "p"},
    "spec": {"containers": [CONTAINER], "volumes": [{"name": "v", "emptyDir": {}}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}


def pod() -> core.Pod:
    return from_json(core.Pod, POD)


def filled() -> core.Pod:
    made = pod()
    presence.fill(made)
    return made


def test_fields_that_are_no_pointers_are_written_when_empty() -> None:
    container = filled().spec.containers[0]

    assert container.HasField("workingDir")
    assert container.HasField("resources")
    assert not container.HasField("livenessProbe")


def test_a_message_that_was_filled_stays_as_it_is() -> None:
    again = filled()

    presence.fill(again)

    assert again == filled()


def test_a_filled_message_that_loses_a_field_gets_it_again() -> None:
    changed = filled()
    changed.spec.ClearField("restartPolicy")
    changed.spec.containers[0].ClearField("workingDir")
    changed.status.conditions[0].ClearField("message")

    presence.fill(changed)

    assert changed == filled()


def test_a_part_that_is_added_to_a_filled_message_is_filled() -> None:
    changed = filled()
    changed.spec.containers.add(name="second")
    changed.spec.containers[0].livenessProbe.periodSeconds = 3

    presence.fill(changed)

    assert changed.spec.containers[1].HasField("image")
    assert changed.spec.containers[0].livenessProbe.HasField("timeoutSeconds")
    assert changed.spec.containers[0].livenessProbe.HasField("handler")


def test_more_different_messages_than_are_cached_are_all_filled() -> None:
    status = core.PodStatus()
    for number in range(2000):
        status.conditions.add(type=f"t{number}", status="True")

    presence.fill(status)

    assert all(condition.HasField("reason") for condition in status.conditions)
