"""Word the failures of plugins as upstream's framework does.

Source: kube-scheduler 1.36, framework runtime.
"""

from __future__ import annotations

from scheduler.framework.interface import Code, Plugin, Status


def failed_status(point: str, plugin: str, status: Status) -> Status:
    """Return an Error status that names the plugin that failed and the extension point."""
    running = f'running {point} plugin "{plugin}"'
    if point == "filter":
        running = f'running "{plugin}" filter plugin'
    return Status(Code.Error, (f"{running}: {status.message()}",), plugin, status.error)


def rejected_by(plugin: Plugin, status: Status) -> Status:
    """Return a filter's rejection with the plugin's name, or an Error status if it is no rejection."""
    if status.is_rejected:
        return status.with_plugin(plugin.name)
    return failed_status("filter", plugin.name, status)
