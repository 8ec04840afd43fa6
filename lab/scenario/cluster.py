"""The interface of a cluster for a scenario: real processes and a simulation in one process offer it.

The runner has no other access to processes, files or time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from nominee.lab.history.revision import Revision
from nominee.lab.scenario.fields.options import ComponentOptions, InvariantException
from nominee.lab.scenario.result import Violation
from nominee.localcluster.cluster import FailpointState, FaultState, ProcessState
from nominee.machinery.api.kinds import AnyKind, Kind, M
from nominee.machinery.api.pb import autoscaling_v1
from nominee.machinery.client.api_client import ListResult, WatchEvent
from nominee.machinery.patch.patch_type import PatchType
from nominee.machinery.runtime.clock import Clock
from nominee.machinery.wire.values.scalars import Json


class ObjectClient(Protocol):
    """The methods that a scenario calls of `nominee.machinery.client.api_client.Client`.

    They raise StatusError.
    """

    async def get(
        self, kind: Kind[M], name: str, namespace: str = "", *, resource_version: str = ""
    ) -> M: ...

    async def list(
        self,
        kind: Kind[M],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
        resource_version_match: str = "",
    ) -> ListResult[M]: ...

    def watch_batches(
        self,
        kind: Kind[M],
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        allow_bookmarks: bool = True,
        timeout_seconds: int = 0,
    ) -> AsyncGenerator[Sequence[WatchEvent[M]], None]: ...

    async def create(self, obj: M, *, dry_run: bool = False) -> M: ...

    async def patch(
        self,
        kind: Kind[M],
        name: str,
        namespace: str,
        patch: object,
        *,
        patch_type: PatchType = PatchType.STRATEGIC,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
        force: bool = False,
    ) -> M: ...

    async def patch_scale(
        self,
        kind: AnyKind,
        name: str,
        namespace: str,
        patch: object,
        *,
        patch_type: PatchType = PatchType.MERGE,
        dry_run: bool = False,
    ) -> autoscaling_v1.Scale: ...

    async def delete(
        self,
        kind: AnyKind,
        name: str,
        namespace: str = "",
        *,
        grace_period_seconds: int | None = None,
        uid: str = "",
        resource_version: str = "",
        propagation_policy: str = "",
        dry_run: bool = False,
    ) -> bool: ...

    async def evict(
        self, namespace: str, name: str, *, grace_period_seconds: int | None = None, uid: str = ""
    ) -> None: ...


class ScenarioCluster(Protocol):
    """A running cluster.

    Components are named as in `nominee status` (`scheduler`, `kubelet-0`); `kubelet` is all kubelets.
    Every method may raise ClusterError.
    """

    @property
    def clock(self) -> Clock:
        """Return the time of the scenario: real, or simulated."""
        ...

    @property
    def client(self) -> ObjectClient:
        """Return a client of the API server as administrator."""
        ...

    # Processes.

    async def processes(self) -> Sequence[ProcessState]:
        """Return the state of every process."""
        ...

    async def start(self, component: str, options: ComponentOptions) -> None:
        """Start a component that is down, with the cluster's options and these; return when it is ready."""
        ...

    async def stop(self, component: str, *, kill: bool) -> None:
        """Stop a component, with SIGKILL if asked; it stays down until `start`."""
        ...

    async def restart(self, component: str, options: ComponentOptions, *, kill: bool) -> None:
        """Restart a component with the cluster's options and these; return when it is ready."""
        ...

    async def pause(self, component: str) -> None:
        """Freeze a component (SIGSTOP)."""
        ...

    async def resume(self, component: str) -> None:
        """Continue a paused component."""
        ...

    # Faults.

    async def arm_failpoint(self, component: str, name: str, action: str) -> None:
        """Arm a failpoint, or disarm it with `off`."""
        ...

    async def failpoints(self, component: str) -> Sequence[FailpointState]:
        """Return the failpoints of a running component."""
        ...

    async def inject_fault(
        self, component: str, action: str, *, to: str = "*", method: str = "*", kind: str = "*"
    ) -> None:
        """Set a fault of the calls of a component to others, or remove faults (`off`); `*` is all."""
        ...

    async def call_faults(self, component: str) -> FaultState:
        """Return the faults of one running process, and the calls that it made while it had some."""
        ...

    async def shift_clock(self, component: str, offset_seconds: float) -> None:
        """Shift the wall clock of a component relative to the cluster's clock."""
        ...

    async def damage_checkpoint(self, node: str, how: str) -> None:
        """Damage the checkpoint of a node: `corrupt`, `truncate` or `delete`."""
        ...

    # Observation.

    async def http_json(self, component: str, path: str) -> Json:
        """Return the JSON that a component serves at a path of its serving port."""
        ...

    async def metrics(self, component: str) -> str:
        """Return a component's metrics in Prometheus' text format."""
        ...

    # Nodes of the cloud.

    async def increase_node_group(self, group: str, count: int) -> None:
        """Create instances of a node group; their nodes appear later."""
        ...

    async def delete_nodes(self, group: str, nodes: Sequence[str]) -> None:
        """Delete instances of a node group by the names of their nodes."""
        ...

    # The end.

    def first_violation(self, exceptions: Sequence[InvariantException]) -> Violation | None:
        """Return the first violation so far of an invariant that is not excepted, if it is known already."""
        ...

    async def history(self) -> Sequence[Revision]:
        """Return every write of the cluster so far."""
        ...

    async def violations(self, exceptions: Sequence[InvariantException]) -> Sequence[Violation]:
        """Check the invariants on the history of all objects so far; return the violations."""
        ...
