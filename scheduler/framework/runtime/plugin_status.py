"""Word the failures of plugins as upstream's framework does.

Source: kube-scheduler 1.36, framework runtime.
"""

from __future__ import annotations

from nominee.scheduler.framework.api.status import check_answer
from nominee.scheduler.framework.interface import Code, Plugin, PreEnqueuePlugin, Status
from nominee.scheduler.framework.types import PodInfo


def failed_status(point: str, plugin: str, status: Status) -> Status:
    """Return an Error status that names the plugin that failed and the extension point."""
    running = f'running {point} plugin "{plugin}"'
    if point == "filter":
        running = f'running "{plugin}" filter plugin'
    return Status(Code.Error, (f"{running}: {status.message()}",), plugin, status.error)


def failed_pre_flight(plugin: str, status: Status) -> Status:
    """Return an Error status for a PreBindPreFlight that is neither Success nor Skip.

    Source: kube-scheduler 1.36, RunPreBindPreFlights, which words them otherwise than other extension points.
    """
    text = f'running PreBindPreFlight "{plugin}": {status.message()}'
    if status.code is not Code.Error:
        text = (
            f'PreBindPreFlight {plugin} returned "{status.code.name}", which is unsupported.'
            " It is supposed to return Success, Skip, or Error status"
        )
    return Status(Code.Error, (text,), plugin, status.error)


def rejected_by(plugin: Plugin, status: Status) -> Status:
    """Return a filter's rejection with the plugin's name, or an Error status if it is no rejection."""
    if status.is_rejected:
        return status.with_plugin(plugin.name)
    return failed_status("filter", plugin.name, status)


def run_pre_enqueue_plugin(plugin: PreEnqueuePlugin, pod: PodInfo) -> Status | None:
    """Return the plugin's rejection, or an Error status if it failed; None: the pod may be tried."""
    try:
        status = plugin.pre_enqueue(pod)
        if status is not None:
            check_answer(status, "pre_enqueue")
    except Exception as error:  # noqa: BLE001  # plugins come from outside
        status = Status.as_error(error)
    if status is None or status.is_success:
        return None
    if status.is_rejected:
        return status.with_plugin(plugin.name)
    return failed_status("PreEnqueue", plugin.name, status)
