"""Run the updater against a cluster: list the pods, decide, resize or evict, and report each step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from nominee.lab.vpa.trace import Trace
from nominee.lab.vpa.updater import Action, Decision, Updater
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.machinery.runtime.clock import Clock

_SERVER_ERROR = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A decision, its time (seconds since the trace began), and the answer of the API server."""

    at_seconds: float
    decision: Decision
    error: str = ""

    @property
    def document(self) -> dict[str, object]:
        """Return the step as `-o json` prints it."""
        return {
            "atSeconds": round(self.at_seconds, 3),
            "pod": str(self.decision.pod),
            "action": self.decision.action.value,
            "reason": self.decision.reason,
            "containers": [
                {"name": c.name, "requests": dict(c.requests), "limits": dict(c.limits)}
                for c in self.decision.containers
            ],
            "error": self.error,
        }


class Shell:
    """The updater of the pods that a selector matches in one namespace."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        updater: Updater,
        trace: Trace,
        *,
        namespace: str,
        selector: str,
        report: Callable[[Step], None],
    ) -> None:
        self._client, self._clock, self._updater, self._trace = client, clock, updater, trace
        self._namespace, self._selector, self._report = namespace, selector, report
        self._began = clock.monotonic()

    async def run(self, interval_seconds: float, duration_seconds: float | None) -> None:
        """Run a round at each interval, until the duration is over; without a duration, until cancelled."""
        rounds = math.inf if duration_seconds is None else math.floor(duration_seconds / interval_seconds) + 1
        number = 0
        while number < rounds:
            await self.run_round()
            number += 1
            if number < rounds:
                next_at = self._began + number * interval_seconds
                await self._clock.sleep(max(next_at - self._clock.monotonic(), 0.0))

    async def run_round(self) -> None:
        """List the pods and their ReplicaSets, decide, and carry out the decisions.

        A request that the API server cannot serve now is reported; the next round decides again.
        """
        now = self._clock.monotonic()
        listed = await self._client.list(kinds.POD, self._namespace, label_selector=self._selector)
        sets = await self._client.list(kinds.REPLICA_SET, self._namespace)
        replicas = {item.metadata.uid: item.spec.replicas for item in sets.items}
        pods = {pod.metadata.uid: pod for pod in listed.items}
        for decision in self._updater.decide(
            listed.items, replicas, self._trace.usage_at(now - self._began), now
        ):
            await self._carry_out(decision, pods[decision.uid])

    async def _carry_out(self, decision: Decision, pod: core.Pod) -> None:
        try:
            await self._request(decision)
        except StatusError as error:
            self._say(decision, error.message)
            if decision.action is Action.RESIZE and error.code < _SERVER_ERROR:
                # As upstream: a refused resize falls back to eviction at once.
                await self._carry_out(self._updater.resize_failed(decision, pod, error.reason), pod)
            return
        self._say(decision)

    async def _request(self, decision: Decision) -> None:
        key = decision.pod
        if decision.action is Action.RESIZE:
            await self._client.patch(kinds.POD, key.name, key.namespace, decision.patch, subresource="resize")
        elif decision.action is Action.EVICT:
            await self._client.evict(key.namespace, key.name, uid=decision.uid)

    def _say(self, decision: Decision, error: str = "") -> None:
        elapsed = self._clock.monotonic() - self._began
        self._report(Step(at_seconds=elapsed, decision=decision, error=error))
