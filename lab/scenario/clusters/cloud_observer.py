"""Observe the requests to a simulation's cloud, and its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final
from weakref import WeakKeyDictionary

import grpc
from google.protobuf.message import Message

from nominee.lab.history.invariants.checking.cloud_calls import CloudCall
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2 as protocol
from nominee.simulation.etcd.store import Store
from nominee.simulation.event_loop.clock import EPOCH_SECONDS
from nominee.simulation.network.call import Call, Status

_SERVICE: Final = f"/{protocol.DESCRIPTOR.services_by_name['CloudProvider'].full_name}/"
_ANSWERS: Final[Mapping[str, tuple[type[Message], type[Message]]]] = {
    name: (getattr(protocol, f"{name}Request"), getattr(protocol, f"{name}Response"))
    for name in (
        "NodeGroups",
        "NodeGroupTargetSize",
        "NodeGroupNodes",
        "NodeGroupIncreaseSize",
        "NodeGroupDecreaseTargetSize",
        "NodeGroupDeleteNodes",
    )
}


class CloudObserver:
    """Reports each call of the autoscaler to the cloud to `observe`, when it is answered.

    `deletions` are the revisions at which it asked to delete a node, by node, also where no answer came.
    """

    def __init__(self, store: Store, observe: Callable[[CloudCall], None]) -> None:
        self._store, self._observe = store, observe
        self.deletions: dict[str, list[int]] = {}
        self._open: WeakKeyDictionary[Call, tuple[bytes, int, float]] = WeakKeyDictionary()

    def on_request(self, call: Call, data: bytes) -> None:
        """Keep a request of an autoscaler; kubelets and the program that simulates read, too."""
        is_autoscaler = call.client is not None and call.client.name.startswith("autoscaler")
        if not is_autoscaler or not call.path.startswith(_SERVICE):
            return
        self._open[call] = data, self._store.revision, EPOCH_SECONDS + call.network.loop.time()
        if call.path == f"{_SERVICE}NodeGroupDeleteNodes":
            for node in protocol.NodeGroupDeleteNodesRequest.FromString(data).nodes:
                self.deletions.setdefault(node.name, []).append(self._store.revision)

    def on_response(self, call: Call, data: bytes, status: Status | None) -> None:
        """Report the answer of a request that is kept."""
        sent, method = self._open.pop(call, None), call.path.removeprefix(_SERVICE)
        if sent is None or status is None or method not in _ANSWERS:
            return
        (request, response), (asked, begin, time) = _ANSWERS[method], sent
        is_done = status.code is grpc.StatusCode.OK
        self._observe(
            CloudCall(
                client_pid=call.client.pid if call.client is not None else 0,
                request=request.FromString(asked),
                response=response.FromString(data) if is_done else None,
                begin=begin,
                begin_time=time,
            )
        )
