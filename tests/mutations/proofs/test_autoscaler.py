"""The autoscaler: answers of the API server that do not come, and pauses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nominee.autoscaler.actuation.deletion_states import DeletionEvent
from nominee.autoscaler.orders import CheckPodsOnNode, ErrorType, Failure
from nominee.autoscaler.steps.scaling.scale_up import scale_up
from nominee.machinery.runtime.clock import FakeClock
from tests.autoscaler.actuation.test_deletion_states import Deletion
from tests.autoscaler.builders import new_world, pod
from tests.autoscaler.cloud.test_state import GROUP, NOW, begun
from tests.autoscaler.steps.test_orders import begin


def test_pods_that_cannot_be_read_are_not_gone() -> None:
    drained = Deletion(drain=True)
    drained.deletion._pods = tuple(drained.world.pods.values())
    check = drained.deletion._check_pods()
    assert isinstance(next(check), CheckPodsOnNode)
    with pytest.raises(StopIteration) as ended:
        check.send(Failure(ErrorType.API_CALL, "away"))
    assert ended.value.value is DeletionEvent.FAILED


async def test_no_node_is_deleted_soon_after_a_scale_up() -> None:
    world = new_world(FakeClock(), target=0)
    state, context = await begin(world)
    list(scale_up(state, context, [pod(world, "a", "1500m", unschedulable=True)]))
    assert state.cooldowns.active(context.result.at.monotonic + 1.0)


def test_an_instance_that_is_being_deleted_is_not_counted_again() -> None:
    cloud = begun(replace(GROUP, min=0, target=2, deletion_delay=10.0))
    cloud.advance(NOW + 2)
    for seconds in (3, 4):
        cloud.delete("g", ["g-1"], NOW + seconds)
    assert cloud.target("g") == 1
