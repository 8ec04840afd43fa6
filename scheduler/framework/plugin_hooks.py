"""The hooks of one attempt, called after each plugin (see `nominee.scheduler.framework.runtime.instrumentation`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

Hook = tuple[Callable[..., None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginHooks:
    """Hooks of one attempt, by extension point. An observer has a method of the same name; see `hooks_of`.

    A hook is called with the attempt's state and with the arguments beside its field. `plugin` is the
    plugin's name, `status` its answer (a plugin that raised: Error) and `seconds` its duration.
    """

    pre_filter: Hook = ()  # plugin, result or None, status, seconds
    pre_filter_extension: Hook = ()  # plugin, point (PreFilterExtensionAddPod or ...), status, seconds
    filter_rows: Hook = ()  # pod, snapshot, rows, the plugin itself, mask (None: all rows passed), seconds
    filter_node: Hook = ()  # plugin, node, status, seconds
    rows_filtered: Hook = ()  # by all plugins: pod, snapshot, rows, verdicts (masks of those that reject)
    node_filtered: Hook = ()  # by all plugins: node, status (the first rejection)
    post_filter: Hook = ()  # plugin, statuses of the nodes, result or None, status, seconds
    pre_score: Hook = ()  # plugin, status, seconds
    score: Hook = ()  # plugin, snapshot, rows, scores before normalisation, seconds
    normalize: Hook = ()  # plugin, seconds
    scored: Hook = ()  # by all plugins: snapshot, rows, weighted scores by plugin
    reserve: Hook = ()  # plugin, node's name, status, seconds
    unreserve: Hook = ()  # plugin, seconds
    permit: Hook = ()  # plugin, status, how many seconds the pod may wait for it, seconds
    pre_bind_pre_flight: Hook = ()  # plugin, status, seconds
    pre_bind: Hook = ()  # plugin, status, seconds
    bind: Hook = ()  # plugin, status, seconds
    post_bind: Hook = ()  # plugin, seconds


NO_PLUGIN_HOOKS: Final = PluginHooks()
