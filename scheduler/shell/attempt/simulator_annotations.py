"""Write each plugin's answers into the pod's annotations (`--simulator-annotations`).

Costs several times the attempt itself. The annotations are those of kube-scheduler-simulator.
"""

from __future__ import annotations

from collections.abc import Callable

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client, retry_unavailable
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import Clock
from nominee.scheduler.result_recorder import results_of
from nominee.scheduler.shell.attempt.attempt import Attempt
from nominee.scheduler.simulator_results import with_history

_log = logs.get()


class ResultWriter:
    """Patches the pod's annotations once after each attempt; a failure is logged."""

    def __init__(self, client: Client, clock: Clock, cached: Callable[[ObjectKey], core.Pod | None]) -> None:
        self._client = client
        self._clock = clock
        self._cached = cached

    async def write(self, attempt: Attempt) -> None:
        """Write the results of an attempt that is over: the pod is bound, or back in the queue."""
        results = results_of(attempt.state)
        pod = self._cached(attempt.pod.key)
        if results is None or pod is None or pod.metadata.uid != attempt.pod.uid:
            return
        annotations = with_history(results.annotations(), dict(pod.metadata.annotations))
        patch = {"metadata": {"uid": attempt.pod.uid, "annotations": annotations}}
        try:
            await retry_unavailable(
                lambda: self._client.patch(kinds.POD, attempt.pod.name, attempt.pod.namespace, patch),
                clock=self._clock,
            )
        except StatusError as error:
            _log.warning("Could not write results", pod=attempt.pod.key, step="results", error=error)
