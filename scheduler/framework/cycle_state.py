"""Keep the data that plugins store during one pod's scheduling cycle.

Source: kube-scheduler 1.36, framework, CycleState.
"""

from __future__ import annotations

from typing import Any

from nominee.scheduler.framework.plugin_hooks import NO_PLUGIN_HOOKS, PluginHooks


class CycleState:
    """Values by key, the plugins to be skipped, and the hooks of the attempt; dry runs use clones."""

    __slots__ = (
        "_values",
        "hooks",
        "parallel_pre_bind_plugins",
        "skip_filter_plugins",
        "skip_plugins",
        "skip_pre_bind_plugins",
        "skip_score_plugins",
    )

    def __init__(self, hooks: PluginHooks = NO_PLUGIN_HOOKS) -> None:
        self._values: dict[str, Any] = {}
        self.hooks = hooks
        self.skip_plugins: frozenset[str] = frozenset()  # that take no part in the cycle at all
        self.skip_filter_plugins: frozenset[str] = frozenset()
        self.skip_score_plugins: frozenset[str] = frozenset()
        self.skip_pre_bind_plugins: frozenset[str] = frozenset()
        self.parallel_pre_bind_plugins: frozenset[str] = frozenset()

    def read(self, key: str) -> Any:
        """Return the value under the key.

        Raises:
            KeyError: the key has no value.
        """
        return self._values[key]

    def get(self, key: str) -> Any | None:
        return self._values.get(key)

    def write(self, key: str, value: Any) -> None:
        self._values[key] = value

    def delete(self, key: str) -> None:
        self._values.pop(key, None)

    def clone(self) -> CycleState:
        """Return a copy whose values are clones where they have a `clone` method, else shared."""
        other = CycleState(self.hooks)
        for key, value in self._values.items():
            clone = getattr(value, "clone", None)
            other._values[key] = value if clone is None else clone()
        other.skip_plugins = self.skip_plugins
        other.skip_filter_plugins = self.skip_filter_plugins
        other.skip_score_plugins = self.skip_score_plugins
        other.skip_pre_bind_plugins = self.skip_pre_bind_plugins
        other.parallel_pre_bind_plugins = self.parallel_pre_bind_plugins
        return other
