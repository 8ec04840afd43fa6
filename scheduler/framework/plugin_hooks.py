"""The hooks of one attempt, called after each plugin (see `nominee.scheduler.framework.instrumentation`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

Hook = tuple[Callable[..., None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginHooks:
    """Hooks of one attempt, by the method of `PluginObserver` that they are."""

    pre_filter: Hook = ()
    pre_filter_extension: Hook = ()
    filter_rows: Hook = ()
    filter_node: Hook = ()
    rows_filtered: Hook = ()
    node_filtered: Hook = ()
    post_filter: Hook = ()
    pre_score: Hook = ()
    score: Hook = ()
    normalize: Hook = ()
    scored: Hook = ()
    reserve: Hook = ()
    unreserve: Hook = ()
    permit: Hook = ()
    pre_bind_pre_flight: Hook = ()
    pre_bind: Hook = ()
    bind: Hook = ()
    post_bind: Hook = ()


NO_PLUGIN_HOOKS: Final = PluginHooks()
