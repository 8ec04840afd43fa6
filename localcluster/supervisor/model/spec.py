"""The supervisor's input: plain data that it reads as JSON (D/run/plan.json)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from nominee.localcluster.supervisor.model.core import Policy
from nominee.localcluster.supervisor.model.node_ranges import NodeRange, of_kubelet, without

FIRST_SECONDS_MAX = 1800.0
"""How long the first program may run: ten thousand pods are imported in minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """One process: its command line, and when it is stopped.

    `first_start` has options of its first start only, such as a failpoint that crashes it. `ready_path`
    is the HTTP path of its health check on the address that its run file gives as `http`; "" for a program
    that writes no run file, which is ready when it runs. `starts_with_cluster`: else a command starts it.
    """

    name: str
    component: str
    argv: tuple[str, ...]
    stop_stage: int
    first_start: tuple[str, ...] = ()
    ready_path: str = "/readyz"
    starts_with_cluster: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """A whole cluster. If it is not ready after `ready_seconds_max`, `up` stops it."""

    directory: Path
    processes: tuple[ProcessSpec, ...]
    environment: dict[str, str] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)
    ready_seconds_max: float = 60.0
    json_output: bool = False  # print the cluster as JSON when it is ready
    hint: str = ""  # the option that other commands need to find this cluster: "" or " --dir D"
    # Nodes of earlier kubelets of this directory, whose objects may still exist.
    earlier_nodes: tuple[NodeRange, ...] = ()
    # A program that runs to its end when the processes are ready, except for those in `later`: names of
    # processes, which start after it, each group when the group before it is ready.
    first: tuple[str, ...] = ()
    later: tuple[tuple[str, ...], ...] = ()

    @property
    def nodes(self) -> tuple[NodeRange, ...]:
        """Return the nodes of this cluster's kubelets, without those of a cloud."""
        return tuple(of_kubelet(p.argv) for p in self.processes if p.component == "kubelet")

    @property
    def surplus_nodes(self) -> tuple[NodeRange, ...]:
        """Return the earlier nodes that no kubelet has now; none in a cluster without kubelets."""
        components = {process.component for process in self.processes}
        return without(self.earlier_nodes, self.nodes) if {"apiserver", "kubelet"} <= components else ()

    def to_json(self) -> str:
        document = asdict(self)
        document["directory"] = str(self.directory)
        return json.dumps(document, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> ClusterSpec:
        """Parse the output of `to_json`.

        Raises:
            ValueError, KeyError, TypeError: the text is something else.
        """
        document = json.loads(text)
        document["directory"] = Path(document["directory"])
        document["processes"] = tuple(
            ProcessSpec(
                **{**process, "argv": tuple(process["argv"]), "first_start": tuple(process["first_start"])}
            )
            for process in document["processes"]
        )
        document["policy"] = Policy(**document["policy"])
        document["first"] = tuple(document.get("first", ()))
        document["later"] = tuple(map(tuple, document.get("later", ())))
        document["earlier_nodes"] = tuple(NodeRange(**each) for each in document.get("earlier_nodes", ()))
        return cls(**document)
