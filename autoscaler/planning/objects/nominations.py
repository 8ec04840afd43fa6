"""How long each nomination has existed, for `--compat=fixed`. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from nominee.machinery.api.pb import core


class Nominations:
    """Record when each (pod, node) pair was first seen, since `status.nominatedNodeName` has no timestamp.

    `timeout` in seconds: `--nomination-timeout`; `now` in seconds of `Clock.monotonic`.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._first_seen: dict[tuple[str, str], float] = {}

    def update(self, pods: Iterable[core.Pod], now: float) -> None:
        """Take over the nominated pods of this loop, and forget all others."""
        pairs = [(pod.metadata.uid, pod.status.nominatedNodeName) for pod in pods]
        self._first_seen = {pair: self._first_seen.get(pair, now) for pair in pairs}

    def binding(self, now: float) -> frozenset[str]:
        """Return the UIDs of the pods whose nomination still blocks the deletion of its node."""
        return frozenset(uid for (uid, _), since in self._first_seen.items() if now - since < self._timeout)
