"""Define the documented output of `nominee explain` and `/debug/explain`: types with their fields' meaning.

The JSON Schema and the tables of docs/explain.md are made from these types (`nominee.explain.schema`). Within
v1 fields may be added; no field is removed, renamed or given another meaning.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, NotRequired, TypedDict

API_VERSION: Final = "explain.nominee.dev/v1"

ApiVersion = Literal["explain.nominee.dev/v1"]
Code = Literal["Unschedulable", "UnschedulableAndUnresolvable", "Pending", "Error"]
State = Literal[
    "Active",
    "Backoff",
    "Unschedulable",
    "Gated",
    "Scheduling",
    "WaitingOnPermit",
    "Binding",
    "Bound",
    "OtherScheduler",
    "Unknown",
]
Result = Literal["Scheduled", "Unschedulable", "SchedulerError"]


class Rejection(TypedDict):
    """A status by which a plugin rejects the pod."""

    plugin: Annotated[str, "The plugin that rejected; the first one, as later plugins do not run."]
    reasons: Annotated[list[str], "Its reasons, sorted, without duplicates."]
    code: Annotated[
        Code,
        "The status code. Preemption can help only on nodes that are `Unschedulable`.",
    ]


class NodeRejection(Rejection):
    """A node that does not fit, and why."""

    node: Annotated[str, "The node's name."]


class NodeScore(TypedDict):
    """The score of a feasible node."""

    node: Annotated[str, "The node's name."]
    total: Annotated[int, "The sum over all plugins; the node with the highest total is selected."]
    plugins: Annotated[dict[str, int], "By plugin: the normalized score times the plugin's weight."]


class Candidate(TypedDict):
    """A node where the pod fits once the victims are evicted."""

    node: Annotated[str, "The node's name."]
    victims: Annotated[list[str], "Pods to evict, `namespace/name`, the most important first."]
    pdbViolations: Annotated[int, "How many of these evictions violate a PodDisruptionBudget."]


class Preemption(TypedDict):
    """The evictions by which preemption would make room."""

    nominatedNode: Annotated[str, 'The node that the pod would be nominated to; "" if there is no candidate.']
    victims: Annotated[list[str], "Pods to evict from that node, the most important first."]
    equalNodes: Annotated[
        list[str], "The best candidates, `nominatedNode` among them; the scheduler may choose any of them."
    ]
    candidates: Annotated[list[Candidate], "All candidates, by node name."]
    rejectedNodes: Annotated[list[NodeRejection], "Nodes where the dry run found no victims, and why."]
    message: Annotated[str, "What the PostFilter plugins add to the FailedScheduling event."]


class NominatedNodeName(TypedDict):
    """The change of the pod's `status.nominatedNodeName`."""

    before: Annotated[str, 'The present value, "" if it is not set.']
    after: Annotated[str, 'The value after the scheduling cycle, "" if it is cleared.']


class NominatedPods(TypedDict):
    """Pods nominated to a node, of at least the pod's priority: their requests count as used."""

    node: Annotated[str, "The node's name."]
    pods: Annotated[list[str], "The nominated pods, `namespace/name`."]


class Shortage(TypedDict):
    """A resource of which nodes have too little left for the pod."""

    resource: Annotated[str, "The resource's name."]
    nodeCount: Annotated[int, "How many nodes were rejected for it."]
    mostFree: Annotated[str, "The most that one of them has left, as in a manifest."]
    request: Annotated[str, "The pod's request."]


class DeferredResize(TypedDict):
    """The resize of a bound pod that its kubelet has deferred."""

    node: Annotated[str, "The pod's node."]
    kubeletMessage: Annotated[str, "Why the kubelet deferred it: the message of PodResizePending."]
    preemptionDisabledBy: Annotated[str, 'Why the scheduler may not preempt for it; "" if it may.']


class PodExplanation(TypedDict):
    """The decision of one scheduling cycle about a pod, when it evaluates every node."""

    apiVersion: Annotated[ApiVersion, "Version of this format."]
    kind: Annotated[Literal["PodExplanation"], "Type of this document."]
    cluster: NotRequired[Annotated[str, "Name of the cluster, if the file holds several."]]
    pod: Annotated[str, "The pod, `namespace/name`."]
    priority: Annotated[int, "The pod's priority."]
    preEnqueue: Annotated[
        Rejection | None, "Why the pod is not scheduled at all (for example a scheduling gate)."
    ]
    feasibleNodes: Annotated[list[str], "Nodes that pass PreFilter and Filter, sorted."]
    rejectedNodes: Annotated[list[NodeRejection], "All other nodes, sorted by name."]
    scores: Annotated[
        list[NodeScore], "Scores of feasible nodes, sorted by name; empty if there was no choice to make."
    ]
    selectedNodes: Annotated[
        list[str],
        "The feasible nodes with the highest total (the scheduler picks one at random), or the pod's "
        "nominated node if it is feasible.",
    ]
    usesNominatedNode: Annotated[
        bool, "Whether the pod's nominated node was taken although other nodes are feasible."
    ]
    message: Annotated[
        str, 'The FailedScheduling event without the part of preemption; "" if a node is feasible.'
    ]
    preemption: Annotated[Preemption | None, "null if a node is feasible."]
    nominatedNodeName: Annotated[NominatedNodeName, "What becomes of `status.nominatedNodeName`."]
    nominatedPods: Annotated[
        list[NominatedPods], "Nominations of other pods that this pod must respect, by node."
    ]
    requeueEvents: Annotated[
        list[str], "Cluster events that may move the pod out of the unschedulable queue."
    ]
    omittedNodes: Annotated[int, "Nodes that the lists leave out; see `--nodes`."]
    shortages: NotRequired[
        Annotated[list[Shortage], "The resources of which rejected nodes have too little."]
    ]
    helpfulChanges: NotRequired[
        Annotated[
            list[str],
            "Changes for `--what-if`; each alone gives the pod a node, or victims on one. With `--pod`.",
        ]
    ]
    deferredResize: NotRequired[
        Annotated[
            DeferredResize,
            "Of a bound pod whose resize is deferred. `feasibleNodes` has its node if the resize fits there "
            "now; else `preemption` has the victims.",
        ]
    ]


class AttemptRejection(Rejection):
    """Nodes that one attempt rejected for the same reasons."""

    nodeCount: Annotated[int, "How many nodes."]
    nodes: Annotated[list[str], "The first of them."]


class Attempt(TypedDict):
    """One attempt of the running scheduler to place the pod."""

    time: Annotated[str, "When it ended, RFC 3339."]
    result: Annotated[Result, "`Scheduled`, or the reason of the pod's PodScheduled condition."]
    node: Annotated[str, 'The node chosen, or nominated for preemption; "" without either.']
    message: Annotated[str, "The message of the FailedScheduling event."]
    evaluatedNodes: Annotated[int, "Nodes that were evaluated."]
    feasibleNodes: Annotated[int, "Nodes that were feasible."]
    victims: Annotated[list[str], "Pods that preemption evicted."]
    rejections: Annotated[list[AttemptRejection], "Why nodes were rejected, the most frequent reasons first."]


class LivePodExplanation(TypedDict):
    """A pod of a running cluster: its state, its last attempts, and the decision of a cycle now."""

    apiVersion: Annotated[ApiVersion, "Version of this format."]
    kind: Annotated[Literal["LivePodExplanation"], "Type of this document."]
    pod: Annotated[str, "The pod, `namespace/name`."]
    state: Annotated[
        State,
        "The queue that holds the pod (`Active`, `Backoff`, `Unschedulable`, `Gated`), or what the scheduler "
        "does with it.",
    ]
    schedulerName: Annotated[str, "The pod's `spec.schedulerName`."]
    node: Annotated[str, 'The node that the pod is bound, or being bound, to; else "".']
    nominatedNode: Annotated[str, 'The node that the scheduler keeps for the pod; else "".']
    attemptCount: Annotated[int, "Attempts since the pod entered the queue."]
    rejectedBy: Annotated[list[str], "Plugins that rejected the pod in the last attempt."]
    since: Annotated[str, 'When the pod entered its queue, RFC 3339; "" if it is in none.']
    lastAttemptStartTime: Annotated[
        str,
        "When the pod was popped for its last attempt, RFC 3339. When the attempt fails, the scheduler "
        'considers what changed since; "" if the pod was not tried, or is in no queue.',
    ]
    attempts: Annotated[list[Attempt], "The last attempts, the newest last."]
    error: Annotated[str, "Why there is no explanation: a plugin failed."]
    explanation: Annotated[
        PodExplanation | None, "What a scheduling cycle would decide now; null for a pod that is not pending."
    ]


class PodExplanationList(TypedDict):
    """Explanations of several pods (`-o json` without `--pod`)."""

    apiVersion: Annotated[ApiVersion, "Version of this format."]
    kind: Annotated[Literal["PodExplanationList"], "Type of this document."]
    items: Annotated[list[PodExplanation], "One for each pod."]
