"""A document of a time line of any size, as `lab/timeline/document.py` writes it, for the page's tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

BEGIN: Final = 1732399200.0
_GIB: Final = 1 << 30
_OWNERS: Final = ("web", "api", "search", "cache", "batch", "metrics", "ingest", "worker", "mail", "auth")

Row = dict[str, Any]


@dataclass(slots=True)
class Sample:
    """A cluster whose writes are recorded."""

    nodes: int
    pods: int
    random: Random = field(default_factory=lambda: Random(1))
    time: float = BEGIN
    revision: int = 100
    revisions: list[Row] = field(default_factory=list)
    marks: list[Row] = field(default_factory=list)
    rows: dict[str, Row] = field(default_factory=dict)

    def write(self, kind: str, name: str, row: Row | None, writer: str, *, state: bool = False) -> Row:
        """Record a write of an object."""
        self.revision += 1
        self.time += self.random.uniform(0.2, 1.0) * 120 / (self.pods * 5 + 40)
        former = self.rows.get(name, {})
        stored = None if row is None else {**former, **row}
        self.rows[name] = stored or {}
        revision = {
            "r": self.revision,
            "t": round(self.time, 6),
            "k": kind,
            "n": name,
            "w": writer,
            "row": stored,
        }
        if kind == "Pod":
            revision["ns"] = "default"
        if state:
            revision["state"] = True
        self.revisions.append(revision)
        return revision

    def mark(self, kind: str, text: str, about: str | None = None) -> None:
        """Record a mark at the present time."""
        self.marks.append({"t": self.time, "kind": kind, "text": text, "object": about})

    def pod(self, number: int, job: str = "", **fields: Any) -> str:
        """Create a pod that waits, of a Job or of one of the ReplicaSets."""
        owner = job or _OWNERS[min(int(self.random.expovariate(0.45)), len(_OWNERS) - 1)]
        name = f"{owner}-{number:05d}"
        priority = 1000 if owner == "web" else 100 if owner in ("api", "search") else 0
        row = {
            "uid": str(number),
            "phase": "Pending",
            "priority": priority,
            "owner": f"Job/{job}" if job else f"ReplicaSet/{owner}",
            "cpu": self.random.choice([100, 250, 500, 1000]),
            "memory": self.random.choice([2, 4, 8]) * _GIB // 4,
            "rows": {"phase": "Pending"},
            **fields,
        }
        self.write("Pod", name, row, f"create pods by {'job' if job else 'replicaset'}-controller")
        return name

    def bind(self, name: str, node: str) -> None:
        """Bind a pod to a node."""
        rows = {"phase": "Pending", "node": node, "PodScheduled": "True"}
        row = {"node": node, "nominated": "", "prebind": False, "reason": "", "message": "", "rows": rows}
        self.write("Pod", name, row, "create pods/binding by kube-scheduler")

    def start(self, name: str) -> None:
        """Start a bound pod."""
        rows = {"phase": "Running", "node": self.rows[name]["node"], "PodScheduled": "True", "Ready": "True"}
        writer = f"patch pods/status by system:node:{self.rows[name]['node']}"
        self.write("Pod", name, {"phase": "Running", "ready": True, "rows": rows}, writer)

    def waits(self, name: str, message: str, nominated: str = "", **fields: Any) -> None:
        """Write that a pod cannot be scheduled, or where it is nominated."""
        rows = {"phase": "Pending", "PodScheduled": "False Unschedulable"}
        if nominated:
            rows["nominated"] = nominated
        row = {"reason": "Unschedulable", "message": message, "nominated": nominated, "rows": rows, **fields}
        self.write("Pod", name, row, "patch pods/status by kube-scheduler")


def sample(nodes: int, pods: int, source: str = "file") -> Row:
    """Return the document of a cluster with a history of about two minutes."""
    made = Sample(nodes, pods)
    large = [number % 5 == 4 for number in range(nodes)]
    for number in range(nodes):
        row = {
            "cpu": 8000 if large[number] else 4000,
            "memory": (32 if large[number] else 16) * _GIB,
            "pods": 40 if nodes > 9 else 16,
            "zone": f"zone-{'abc'[number % 3]}",
            "group": "large" if large[number] else "general",
            "version": "v1.37.0",
            "ready": "True",
            "devices": {"gpu.example.com": 4} if large[number] and nodes > 9 else {},
            "rows": {"Ready": "True KubeletReady"},
        }
        made.write("Node", f"node-{number}", row, "", state=number < nodes - 1)
    made.mark("start", "cluster started")
    free = {number: made.rows[f"node-{number}"]["cpu"] for number in range(nodes)}
    names: list[str] = []
    for number in range(pods):
        name = made.pod(number)
        wanted = made.rows[name]["cpu"]
        fitting = [each for each in made.random.sample(range(nodes), min(nodes, 6)) if free[each] >= wanted]
        if not fitting:
            made.waits(name, f"0/{nodes} nodes are available: {nodes} Insufficient cpu.")
            continue
        free[fitting[0]] -= wanted
        made.bind(name, f"node-{fitting[0]}")
        made.start(name)
        names.append(name)
        if number == pods // 3:
            made.mark("crash", "kube-scheduler: killed at failpoint bind.before")
            made.mark("restart", "kube-scheduler: started again")
        if number == pods // 2:
            made.mark("fault", "cut kubelet node-1 from the API server")
    _trouble(made, names)
    return _document(made, source)


def _trouble(made: Sample, names: list[str]) -> None:
    """Let nodes fail, pods be preempted, resized, and wait."""
    bound = [name for name in names if made.rows[name].get("node")]
    if made.nodes > 2:
        taint = "node.kubernetes.io/unreachable:NoExecute"
        rows = {"Ready": "Unknown NodeStatusUnknown", "taints": taint}
        made.write("Node", "node-1", {"ready": "Unknown", "taints": [taint], "rows": rows}, "node-lifecycle")
    if made.nodes > 9:
        made.write("Node", "node-7", {"unschedulable": True}, "kubectl cordon")
        made.write("Node", "node-12", {"conditions": {"MemoryPressure": "True"}}, "kubelet")
        made.write("Node", "node-4", {"taints": ["dedicated=gpu:NoSchedule"]}, "kubectl taint")
    for number, victim in enumerate(made.random.sample(bound, max(len(bound) // 40, 1))):
        node = made.rows[victim]["node"]
        name = made.pod(made.pods + number, "train", priority=10000, cpu=made.rows[victim]["cpu"])
        made.mark("preemption", f"{name} preempts {victim} on {node}", f"Pod default/{name}")
        made.waits(name, f"0/{made.nodes} nodes are available: {made.nodes} Insufficient cpu.", node)
        rows = {**made.rows[victim]["rows"], "terminating": "2024-11-24"}
        made.write(
            "Pod", victim, {"terminating": made.time + 30, "rows": rows}, "delete pods by kube-scheduler"
        )
    for number in range(max(made.nodes // 12, 1)):
        name = made.pod(2 * made.pods + number, "volumes")
        made.waits(name, "", f"node-{made.random.randrange(made.nodes)}", reason="", prebind=True)
        made.pod(3 * made.pods + number, "gated", gated=True, reason="SchedulingGated")
    for number, name in enumerate(made.random.sample(bound, max(len(bound) // 30, 2))):
        state = ("Deferred", "InProgress")[number % 2]
        desired = {"cpu": made.rows[name]["cpu"] * 2, "memory": made.rows[name]["memory"]}
        made.write("Pod", name, {"resize": state, "desired": desired}, "patch pods/resize by vpa")
    if made.nodes > 2:
        made.mark("violation", "a pod is bound to a node that is not ready", "Pod default/" + bound[0])


def _document(made: Sample, source: str) -> Row:
    gates = {"NominatedNodeNameForExpectation": True}
    runs = {"version": "1.37", "state": "running", "health": "ok"}
    components = [
        {**runs, "name": "etcd", "component": "etcd", "version": "3.5.1"},
        {**runs, "name": "api-server-0", "component": "api-server", "leader": None},
        {**runs, "name": "scheduler-0", "gates": gates, "leader": True, "failpoints": ["bind.before: crash"]},
        {**runs, "name": "scheduler-1", "version": "1.36", "leader": False},
        {**runs, "name": "controllers", "leader": True, "state": "paused"},
        {**runs, "name": "kubelet-1", "health": "no lease for 12 s", "faults": ["cut from api-server-0"]},
    ]
    live = source == "live"
    return {
        "apiVersion": "dashboard.nominee.dev/v1",
        "kind": "TimeLine",
        "title": f"cluster of {made.nodes} nodes",
        "source": source,
        "read_only": not live,
        "begin": BEGIN,
        "end": made.time + 1,
        "coverage": {"begin": 101, "end": made.revision, "gaps": [], "left_out": 0},
        "revisions": made.revisions,
        "marks": made.marks,
        "components": components,
        "queues": None,
        "autoscaler": None,
        "details": None,
    }
