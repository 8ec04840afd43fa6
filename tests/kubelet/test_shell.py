"""Small parts of the shell: timers, options, containers read back from a status."""

from __future__ import annotations

import anyio
import pytest

from nominee.kubelet import emulation
from nominee.kubelet.features import status_features
from nominee.kubelet.options import Delays, pre_stop_sleep
from nominee.kubelet.resources.pod_resources import desired_resources
from nominee.kubelet.runtime import sandbox as runtime
from nominee.kubelet.runtime.adoption import adopt
from nominee.kubelet.shell.timers import Timers
from nominee.kubelet.status.pod_status import View, build
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.runtime.clock import FakeClock


async def test_timers_call_in_order_of_time() -> None:
    clock, called = FakeClock(), []
    timers = Timers(clock)
    async with anyio.create_task_group() as group:
        group.start_soon(timers.run)
        await clock.settle()
        timers.after(3, lambda: called.append("three"))
        timers.after(1, lambda: called.append("one"))
        timers.after(1, lambda: called.append("one again"))
        await clock.advance(0.5)
        assert called == []
        timers.after(0.1, lambda: called.append("soon"))
        await clock.advance(0.6)
        assert called == ["soon", "one", "one again"]
        await clock.advance(10)
        assert called == ["soon", "one", "one again", "three"]
        assert len(timers) == 0
        group.cancel_scope.cancel()


async def test_beats_stay_as_far_apart_as_they_were_whatever_stands_still() -> None:
    clock, called, ended = FakeClock(), list[tuple[str, float]](), set[str]()
    timers = Timers(clock)

    def beat(name: str) -> bool:
        called.append((name, round(clock.monotonic(), 3)))
        return name not in ended

    async with anyio.create_task_group() as group:
        group.start_soon(timers.run)
        await clock.settle()
        timers.every(1, lambda: beat("a"), first=0.2)
        timers.every(1, lambda: beat("b"), first=0.7)
        await clock.advance(1.5)
        assert called == [("a", 0.2), ("b", 0.7), ("a", 1.2)]
        called.clear()
        clock.set(clock.now() + 3.0)  # the process got no time for so long
        await clock.settle()
        assert called == [("b", 4.5), ("a", 4.5)], "both are late, and are made up for once"
        called.clear()
        await clock.advance(1.5)
        assert called == [("b", 4.7), ("a", 5.2), ("b", 5.7)]
        ended.add("a")
        await clock.advance(2.0)
        assert [name for name, _ in called].count("a") == 2, "the last one was the one that said no"
        group.cancel_scope.cancel()


async def test_beats_that_are_near_each_other_come_together() -> None:
    clock, called = FakeClock(), list[tuple[str, float]]()
    await clock.advance(0.123)
    timers = Timers(clock)

    def begin(name: str, first: float) -> None:
        def beat() -> bool:
            called.append((name, round(clock.monotonic() - 0.123, 3)))
            return True

        timers.every(10, beat, first=first)

    async with anyio.create_task_group() as group:
        group.start_soon(timers.run)
        begin("a", 2.76)
        await clock.advance(0.9)
        begin("b", 2.3)
        begin("c", 2.4)
        begin("soon", 0.01)
        await clock.advance(20)
        assert [name for name, _ in called] == ["soon", "a", "b", "c", "soon", "a", "b", "c"]
        assert [at for _, at in called] == [1.0, 3.0, 3.0, 3.5, 11.0, 13.0, 13.0, 13.5]
        group.cancel_scope.cancel()


def test_annotations_override_delays() -> None:
    pod = core.Pod()
    pod.metadata.annotations["nominee.dev/start-delay"] = "1m30s"
    pod.metadata.annotations["nominee.dev/stop-delay"] = "nonsense"
    pod.metadata.annotations["nominee.dev/exit-code"] = "7"
    assert Delays(stop=2.0).of(pod) == Delays(start=90.0, stop=2.0)
    assert emulation.run_duration(emulation.of(pod)) is None
    assert emulation.exit_code(emulation.of(pod)) == 7


def test_a_pre_stop_sleep_delays_the_end() -> None:
    pod = core.Pod()
    pod.spec.containers.add(name="a").lifecycle.preStop.sleep.seconds = 4
    pod.spec.containers.add(name="b")
    assert pre_stop_sleep(pod) == 4.0


@pytest.mark.parametrize("restarts", [0, 2])
def test_containers_are_read_back_from_the_status(restarts: int) -> None:
    pod = core.Pod()
    pod.metadata.uid = "uid"
    pod.spec.initContainers.add(name="setup")
    pod.spec.initContainers.add(name="side", restartPolicy="Always")
    container = pod.spec.containers.add(name="main")
    container.resources.requests["cpu"].string = "1"
    resources = desired_resources(pod)
    sandbox = runtime.become_ready(
        runtime.start(runtime.prepare(pod, now=100.0), resources, ip="10.0.0.2", now=101.0)
    )
    for _ in range(restarts):
        sandbox = runtime.restart(sandbox, ("main",), resources, now=200.0)
    assert adopt(pod) is None
    known = status_features(Version(1, 37), Gates("kubelet"))
    view = View(pod=pod, host_ip="172.16.0.1", now=300.0, sandbox=sandbox, allocated=resources)
    pod.status.CopyFrom(build(view, known))
    found = adopt(pod)
    assert found is not None
    for old, new in zip(sandbox.containers, found.containers, strict=True):
        assert (old.id, old.restarts, old.state, old.started, old.resources) == (
            new.id, new.restarts, new.state, new.started, new.resources,
        )  # fmt: skip
    pod.status.CopyFrom(
        build(View(pod=pod, host_ip="172.16.0.1", now=400.0, sandbox=found, allocated=resources), known)
    )
    assert adopt(pod) == found
