"""The autoscaler keeps the limits of its node groups, and asks for each instance once."""

from __future__ import annotations

from google.protobuf.message import Message

from nominee.lab.history.invariants.check import Check
from nominee.lab.history.invariants.checking.cloud_calls import CloudCall
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.scaling.node_groups import NodeGroups
from nominee.lab.history.revision import Revision
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2 as protocol
from tests.lab.invariants.histories import BEGIN, History, node, pod

RUNNING = protocol.InstanceStatus.instanceRunning
CREATING = protocol.InstanceStatus.instanceCreating
TAINT = "ToBeDeletedByClusterAutoscaler"
LATER = BEGIN + 100.0


def increase(delta: int = 1) -> Message:
    return protocol.NodeGroupIncreaseSizeRequest(id="pool", delta=delta)


def deletion(*names: str) -> Message:
    nodes = [protocol.ExternalGrpcNode(name=name, providerID=name) for name in names]
    return protocol.NodeGroupDeleteNodesRequest(id="pool", nodes=nodes)


def problems_of(
    history: History,
    *requests: Message,
    instances: tuple[str, ...] = ("n1", "n2"),
    failed: tuple[str, ...] = (),
    least: int = 1,
    earlier: int = 0,
) -> list[str]:
    """Return the problems of requests to a cloud with a group of 1 to 4 instances, some seconds apart.

    So many `earlier` ones begin before the last write. The `failed` instances could not be created.
    """
    check = Check(ComponentSettings(observes_answers=True), [NodeGroups.about.name])
    group = protocol.NodeGroup(id="pool", minSize=least, maxSize=4)
    rows = [
        protocol.Instance(id=name, status=protocol.InstanceStatus(instanceState=RUNNING))
        for name in instances
    ]
    error = protocol.InstanceErrorInfo(errorCode="OUT_OF_STOCK")
    rows += [
        protocol.Instance(id=name, status=protocol.InstanceStatus(instanceState=CREATING, errorInfo=error))
        for name in failed
    ]
    for revision in history.revisions:
        check.observe(revision)
    size, nodes = protocol.NodeGroupTargetSizeRequest(id="pool"), protocol.NodeGroupNodesRequest(id="pool")
    shown = (
        (protocol.NodeGroupsRequest(), protocol.NodeGroupsResponse(nodeGroups=[group])),
        (size, protocol.NodeGroupTargetSizeResponse(targetSize=len(rows))),
        (nodes, protocol.NodeGroupNodesResponse(instances=rows)),
    )
    done = [(request, protocol.NodeGroupDeleteNodesResponse()) for request in requests]
    last: Revision | None = history.revisions[-1] if history.revisions else None
    for number, (request, response) in enumerate((*shown, *done)):
        check.observe_cloud(
            CloudCall(
                client_pid=1,
                request=request,
                response=response,
                begin=last.revision - (number < len(shown) + earlier) if last is not None else 0,
                begin_time=LATER + number,
            )
        )
    (result,) = check.finish(Evidence(now=LATER))
    return [violation.message for violation in result.violations]


NODES = (node("n1"), node("n2"))
TAINTED = node("n1", taints=[TAINT])


def test_a_group_above_its_maximum() -> None:
    history = History().put(*NODES, pod("a"), pod("b"), pod("c"))
    assert problems_of(history, increase(2)) == []
    assert problems_of(history, increase(2), increase()) == [
        "the autoscaler asked for the size 5, and its maximum is 4"
    ]


def test_a_group_in_which_an_instance_failed_is_smaller_without_it() -> None:
    """The same loop deletes it and asks for another one, before it asks for the size again."""
    history = History().put(*NODES, pod("a"))
    three = ("n1", "n2", "n3")
    assert problems_of(history, deletion("n4"), increase(), instances=three, failed=("n4",)) == []
    assert problems_of(history, increase(), instances=three, failed=("n4",)) == [
        "the autoscaler asked for the size 5, and its maximum is 4"
    ]
    # Up to its minimum a group grows without pods.
    nothing = History()
    assert problems_of(nothing, deletion("n1"), increase(), instances=(), failed=("n1",)) == []


def test_more_instances_than_pods_wait() -> None:
    waits, gated = pod("a"), pod("gated")
    gated.spec.schedulingGates.add(name="x")
    one_comes = ("n1", "n2", "comes")
    history = History().put(*NODES, waits, gated)
    # An answer may be lost: once is not held against the autoscaler.
    assert problems_of(history, increase(), instances=one_comes) == []
    (problem,) = problems_of(history, increase(), increase(), instances=("n1", "comes"))
    assert problem.endswith("asked for 1 more, beside 1 on their way, for 1 pods")
    assert problems_of(History().put(*NODES, gated), increase()) == [
        "the autoscaler asked for 1 more, beside 0 on their way, for 0 pods"
    ]
    three_pods = History().put(*NODES, waits, pod("b"), pod("c"))
    assert problems_of(three_pods, increase(), increase(), instances=("n1", "comes")) == []
    runs = (pod("c", node="n1", phase="Running"), pod("d", node="n1", phase="Running"))
    drained = History().put(*NODES, waits, *runs, TAINTED)
    assert problems_of(drained, increase(), increase(), instances=("n1", "comes")) == []


def test_a_group_below_its_minimum() -> None:
    both = History().put(*NODES, TAINTED, node("n2", taints=[TAINT]))
    assert problems_of(both, deletion("n1")) == []
    below = ["the autoscaler deleted the instance n2 at the size 1, and its minimum is 1"]
    assert problems_of(both, deletion("n1"), deletion("n2")) == below
    assert problems_of(both, deletion("n1", "n2")) == below
    assert problems_of(both, deletion("n1", "n2"), least=0) == []
    # An instance without a node came to nothing, whatever the size is.
    assert problems_of(History(), deletion("n1", "n2")) == []


def test_a_group_that_loses_an_instance_without_a_node_during_a_drain() -> None:
    """Both deletions are allowed for themselves: one of two instances is above the minimum."""
    smaller = protocol.NodeGroupDecreaseTargetSizeRequest(id="pool", delta=-1)
    drained = History().put(NODES[0], TAINTED)
    assert problems_of(drained, deletion("n2"), deletion("n1")) == []
    assert problems_of(drained, smaller, deletion("n1")) == []
    assert problems_of(drained, deletion("n2"), deletion("n1"), instances=("n1", "n2", "n3"), least=3) == [
        "the autoscaler deleted the instance n1 at the size 2, and its minimum is 3"
    ]
    # The autoscaler knew of one that was given up before the node was tainted.
    assert problems_of(drained, deletion("n2"), deletion("n1"), earlier=1) == [
        "the autoscaler deleted the instance n1 at the size 1, and its minimum is 1"
    ]


def test_a_node_without_taint() -> None:
    untainted = ["the autoscaler deleted the instance n1, whose node has no taint"]
    assert problems_of(History().put(*NODES), deletion("n1")) == untainted
    assert problems_of(History().put(*NODES, TAINTED), deletion("n1")) == []
    assert problems_of(History().put(*NODES, TAINTED, node("n1")), deletion("n1")) == untainted


def test_an_instance_that_is_deleted_again() -> None:
    history = History().put(*NODES, TAINTED)
    assert problems_of(history, deletion("n1"), deletion("n1")) == []
    assert problems_of(history, *[deletion("n1")] * 3) == [
        "the autoscaler deleted the instance n1 again and again"
    ]
