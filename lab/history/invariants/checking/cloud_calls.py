"""A call of the autoscaler to the cloud, with the history's revision at which it was made."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudCall:
    """A request of the external provider protocol and its answer; None if the cloud has refused it.

    `begin` is etcd's revision when the request was sent, `begin_time` in seconds since the epoch.
    """

    client_pid: int
    request: Message
    response: Message | None
    begin: int
    begin_time: float
