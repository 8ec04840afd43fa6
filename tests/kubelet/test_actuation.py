"""The order of an actuation beside the recordings: added limits, pod-level resources, small numbers."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from nominee.kubelet.resize.actuation import Call, ContainerResize, PodResize, ResizePlan, plan
from nominee.kubelet.resize.cgroups import CPU_SHARES_MIN, PodCgroup, pod_cgroup
from nominee.kubelet.resources.pod_resources import inherited_limits
from nominee.kubelet.resources.requirements import Requirements
from nominee.machinery.api.pb import core

MIB = 1 << 20


def asks(**quantities: str) -> Requirements:
    """Return requirements: `cpu` and `memory` are requests, `max_cpu` and `max_memory` limits."""
    return Requirements.from_json(
        {
            "requests": {name: text for name, text in quantities.items() if not name.startswith("max_")},
            "limits": {
                name.removeprefix("max_"): text
                for name, text in quantities.items()
                if name.startswith("max_")
            },
        }
    )


def pod_of(own: Requirements | None, *containers: Requirements, init: Requirements | None = None) -> core.Pod:
    pod = core.Pod()
    if own is not None:
        own.write(pod.spec.resources)
    if init is not None:
        init.write(pod.spec.initContainers.add().resources)
    for one in containers:
        one.write(pod.spec.containers.add().resources)
    return pod


def resize_of(
    old: Requirements,
    new: Requirements,
    *,
    pod: tuple[Requirements | None, Requirements | None] = (None, None),
    restart_for: Collection[str] = (),
    running: bool = True,
    usage: int = 0,
) -> ResizePlan:
    """Return the plan for a pod with one container `c` that goes from old to new."""
    one = ContainerResize(
        name="c",
        actuated=old.with_limits(inherited_limits(old, pod[0])),
        allocated=new.with_limits(inherited_limits(new, pod[1])),
        own=new,
        restart_for=frozenset(restart_for),
        running=running,
        memory_usage=usage,
    )
    whole = PodResize(
        actuated=pod_cgroup(pod_of(pod[0], old)),
        allocated=pod_cgroup(pod_of(pod[1], new)),
        level_changes=pod[0] != pod[1],
        memory_usage=usage,
    )
    return plan([one], whole)


def shown(made: ResizePlan) -> list[str]:
    """Return the writes in their order: `pod memory 1`, `c cpu`."""
    return [_text(call) for call in made.calls if call.call != "podSandbox"]


def _text(call: Call) -> str:
    if call.call == "container":
        return f"{call.container} {call.resource}"
    for name, value in (
        ("memory", call.memory_limit),
        ("quota", call.cpu_quota),
        ("shares", call.cpu_shares),
    ):
        if value is not None:
            return f"pod {name} {value}"
    raise AssertionError(call)


ADDED = ["c memory", f"pod memory {2 * MIB}", "pod quota 100000", "c cpu"]


def test_an_added_limit_is_growth_for_cpu_and_shrinking_for_memory() -> None:
    made = resize_of(
        asks(cpu="100m", memory="1Mi"), asks(cpu="100m", memory="1Mi", max_cpu="1", max_memory="2Mi")
    )
    assert shown(made) == ADDED


def test_limits_that_are_added_to_the_pod_as_a_whole_are_ordered_as_those_of_a_container() -> None:
    """KEP-5419: a container without a limit of its own has its pod's."""
    own = asks(cpu="100m", memory="1Mi")
    assert shown(resize_of(own, own, pod=(None, asks(max_cpu="1", max_memory="2Mi")))) == ADDED


def test_a_memory_limit_is_not_added_below_what_is_used() -> None:
    """KEP-1287, "Memory Limit Decreases": an added limit is a decrease."""
    made = resize_of(asks(memory="1Mi"), asks(memory="1Mi", max_memory="2Mi"), usage=2 * MIB)
    assert made.error == (
        f"cannot decrease memory limits: [attempting to set pod memory limit ({2 * MIB}) below current usage"
        f' ({2 * MIB}), attempting to set container "c" memory limit ({2 * MIB}) below current usage'
        f" ({2 * MIB})]"
    )
    assert made.calls == ()


def test_a_change_that_no_cgroup_can_show_writes_none() -> None:
    """1m and 2m of cpu both have the least weight, 1m and 10m the least quota."""
    assert shown(resize_of(asks(cpu="1m", max_cpu="1m"), asks(cpu="2m", max_cpu="10m"))) == ["c cpu"]


def test_an_update_of_a_container_without_a_request_gives_it_the_least_weight() -> None:
    """The update always names a request. Source: kubelet 1.36, updatePodContainerResources."""
    made = resize_of(asks(max_cpu="1"), asks(max_cpu="2"))
    assert [call.cpu_shares for call in made.calls if call.container] == [CPU_SHARES_MIN]


def test_pod_level_limits_grow_before_and_shrink_after_the_containers_that_have_them() -> None:
    """KEP-5419: a container without a limit of its own has its pod's."""
    own = asks(cpu="100m")
    small, large = asks(max_cpu="1", max_memory="1Mi"), asks(max_cpu="2", max_memory="2Mi")
    made = resize_of(own, own, pod=(small, large))
    assert shown(made) == [f"pod memory {2 * MIB}", "c memory", "pod quota 200000", "c cpu"]
    assert [call.memory_limit for call in made.calls if call.container] == [2 * MIB, 2 * MIB]
    assert {call.allocated for call in made.calls if call.container} == {own}, "its own resources stay"
    made = resize_of(own, own, pod=(large, small))
    assert shown(made) == ["c memory", f"pod memory {MIB}", "c cpu", "pod quota 100000"]


def test_pod_level_requests_are_the_weight_of_the_pod() -> None:
    own = asks(cpu="100m", max_cpu="100m", max_memory="1Mi")
    made = resize_of(own, own, pod=(asks(cpu="500m"), asks(cpu="1")))
    assert shown(made) == ["pod shares 1024"]


def test_pod_level_resources_of_which_no_cgroup_knows_write_none() -> None:
    made = resize_of(
        asks(cpu="100m"), asks(cpu="100m"), pod=(asks(memory="1Mi", cpu="1"), asks(memory="2Mi", cpu="1"))
    )
    assert shown(made) == []
    assert made.error == ""


def test_the_cgroup_of_a_pod_counts_an_init_container_as_scheduling_does() -> None:
    large, small = asks(cpu="2", max_cpu="2", max_memory="4Mi"), asks(cpu="1", max_cpu="1", max_memory="1Mi")
    assert pod_cgroup(pod_of(None, small, init=large)) == PodCgroup(
        cpu_shares=2048, cpu_quota=200_000, memory_limit=4 * MIB
    )
    assert pod_cgroup(pod_of(None, small, init=asks(cpu="1"))) == PodCgroup(cpu_shares=1024)


@pytest.mark.parametrize(
    ("pod", "restart_for", "running", "restart"),
    [
        ((asks(max_memory="1Mi"), asks(max_memory="2Mi")), {"memory"}, True, ("c",)),
        ((asks(max_memory="1Mi"), asks(max_memory="2Mi")), {"cpu"}, True, ()),
        ((asks(max_memory="1Mi"), asks(max_memory="1024Ki")), {"memory"}, True, ()),
        ((None, asks(max_cpu="1", max_memory="1Mi")), {"cpu"}, True, ("c",)),
        ((asks(max_cpu="200m"), asks(max_cpu="0.2")), {"cpu", "memory"}, True, ()),
        ((asks(max_memory="1Mi"), asks(max_memory="2Mi")), {"memory"}, False, ()),
    ],
)
def test_a_container_restarts_where_its_policy_asks_for_it_and_its_pod_s_limit_changes(
    pod: tuple[Requirements | None, Requirements | None],
    restart_for: set[str],
    running: bool,
    restart: tuple[str, ...],
) -> None:
    """KEP-5419, "Resize Restart Policy"."""
    own = asks(cpu="100m")
    assert resize_of(own, own, pod=pod, restart_for=restart_for, running=running).restart == restart


def test_a_limit_of_its_own_hides_the_pod_s() -> None:
    own = asks(max_memory="1Mi")
    made = resize_of(own, own, pod=(asks(max_memory="2Mi"), asks(max_memory="4Mi")), restart_for={"memory"})
    assert made.restart == ()
