"""The order of actuation against kubelet_actuation.jsonl (real computePodActions and doPodResizeAction).

Each case is one sync of a pod through the kubelet's core; the runtime refuses the nth container update. The
recorder listed the containers to restart and did not start them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from nominee.kubelet import events
from nominee.kubelet.instructions import Actuate, PodInstruction, RuntimeCall
from nominee.kubelet.node.state import NodeSettings
from nominee.kubelet.pod_sync.resize_step import container_resizes, plan_of
from nominee.kubelet.pods.record import PodRecord
from nominee.kubelet.resize import actuation, conditions
from nominee.kubelet.resize.actuation import Call, RestartContainers
from nominee.kubelet.resources.pod_resources import PodResources
from nominee.kubelet.resources.requirements import Requirements
from nominee.kubelet.runtime.sandbox import Container, PodSandbox
from nominee.machinery.api.pb import core
from tests.kubelet.executor import NOW, Executor, uid
from tests.support.recordings import Case, read

CASES = read("kubelet_actuation.jsonl")
REFUSED = "runtime refused"
POD = "p"
CAPACITY = {"cpu": "1000", "memory": "1Ti", "pods": "1"}


@dataclass
class Runtime(Executor):
    """A node whose runtime refuses a container update (a number from 1), and restarts no container."""

    refuses: int | None = None
    done: list[Case] = field(default_factory=list)

    def perform(self, instruction: PodInstruction) -> events.Result:
        if isinstance(instruction, Actuate) and isinstance(instruction.call, RestartContainers):
            sandbox = self.runtime.sandboxes[instruction.uid]
            return events.InstructionFailed(uid=instruction.uid, sandbox=sandbox, at=self.moment())
        return super().perform(instruction)

    def call(self, call: RuntimeCall) -> events.Result:
        if not isinstance(call, Actuate) or not isinstance(call.call, Call):
            return super().call(call)
        self.done.append(shown(call.call))
        if sum("container" in row for row in self.done) == self.refuses and call.call.container:
            self.done[-1]["failed"] = True
            sandbox = self.runtime.sandboxes[call.uid]
            return events.CallRefused(uid=call.uid, error=REFUSED, sandbox=sandbox, at=self.moment())
        return super().call(call)


def shown(call: Call) -> Case:
    row: Case = {"call": call.call}
    if call.container:
        row["container"] = call.container
    for key, value in (
        ("cpuQuota", call.cpu_quota),
        ("cpuShares", call.cpu_shares),
        ("memoryLimit", call.memory_limit),
    ):
        if value is not None:
            row[key] = value
    return row


def runtime_of(case: Case) -> Runtime:
    """A node that was just started and has the case's pod."""
    rows = case["containers"]
    node, pod = core.Node(), core.Pod()
    for resource, text in CAPACITY.items():
        node.status.allocatable[resource].string = text
    pod.metadata.name, pod.metadata.uid = POD, uid(POD)
    for row in rows:
        container = pod.spec.containers.add(name=row["name"])
        Requirements.from_json(row["allocated"]).write(container.resources)
        for resource, policy in row.get("resizePolicy", {}).items():
            container.resizePolicy.add(resourceName=resource, restartPolicy=policy)
    usage = {row["name"]: row["memoryUsageBytes"] for row in rows} | {"": case["podMemoryUsageBytes"]}
    settings = NodeSettings(memory_usage=lambda _pod, _sandbox, container: usage[container])
    here = Runtime(node, settings, api={POD: pod}, refuses=case.get("failContainerCall"))
    here.runtime.sandboxes[uid(POD)] = PodSandbox(
        uid=uid(POD),
        started=NOW,
        ip="10.0.0.1",
        containers=tuple(
            Container(
                name=row["name"],
                state="exited" if row.get("exited") else "running",
                id="x",
                ready=True,
                resources=Requirements.from_json(row["actuated"]),
            )
            for row in rows
        ),
    )
    allocated = PodResources(tuple((row["name"], Requirements.from_json(row["allocated"])) for row in rows))
    here.handle(events.AllocationsRestored(allocations={uid(POD): allocated}))
    here.save()
    here.list_pods()
    return here


def in_progress(here: Runtime, record: PodRecord) -> bool:
    return actuation.in_progress(container_resizes(here.node, record))


def play(case: Case) -> Case:
    """Sync the pod; what it did is compared."""
    here = runtime_of(case)
    record = here.node.pods[uid(POD)]
    record.sandbox = here.runtime.sandboxes[uid(POD)]
    result: Case = {"inProgressBefore": in_progress(here, record)}
    plan = plan_of(here.node, record)
    if plan.restart:
        result |= {"restart": list(plan.restart), "updatePodCgroups": True}
    if plan.update:
        result["update"] = {resource: list(names) for resource, names in plan.update.items()}
    result["resizeActionRun"] = plan.needed
    here.sync(uid(POD))
    if here.done:
        result["calls"] = here.done
    if record.in_progress is not None and record.in_progress.reason == conditions.ERROR:
        result["error"] = record.in_progress.message
    result["actuatedAfter"] = {
        name: requirements.to_json() for name, requirements in record.sandbox.in_force().containers
    }
    result["inProgressAfter"] = in_progress(here, record)
    return result


def test_there_are_cases() -> None:
    assert len(CASES) > 30


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_order(case: Case) -> None:
    assert play(case) == case["expect"]
