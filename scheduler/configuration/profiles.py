"""Build the profiles of KubeSchedulerConfiguration: the plugins of each point, their weights and arguments.

A profile is first merged with the defaults, then MultiPoint is expanded. Source: kube-scheduler 1.36,
mergePlugins and expandMultiPointPlugins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from nominee.scheduler.configuration.fields import Fields
from nominee.scheduler.framework.interface import Plugin
from nominee.scheduler.framework.runtime.profile import (
    DEFAULT_SCHEDULER_NAME,
    PLUGIN_BASES,
    Enabled,
    ExtensionPoint,
    Profile,
)

MULTI_POINT: Final = "multiPoint"
ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class Named:
    """A plugin as configured; weight 0: not given. `path` is its field, for errors."""

    name: str
    weight: int = 0
    path: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class PluginSet:
    """The plugins that one extension point (or MultiPoint) enables and disables."""

    enabled: tuple[Named, ...] = ()
    disabled: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ProfileConfig:
    """A profile as written. `plugins` by extension point, MultiPoint among them."""

    scheduler_name: str
    percentage_of_nodes_to_score: int | None = None
    plugins: Mapping[str, PluginSet] = field(default_factory=dict)
    args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    path: str = field(default="profiles[0]", compare=False)

    @property
    def queue_sort(self) -> list[str]:
        """Return the names of the profile's queueSort plugins, which must be the same in all profiles."""
        chosen = self.plugins.get(ExtensionPoint.QUEUE_SORT, PluginSet())
        return [named.name for named in chosen.enabled]


class ProfileError(ValueError):
    """A profile is invalid; the text begins with the path of the field."""


def default_profile() -> ProfileConfig:
    return ProfileConfig(DEFAULT_SCHEDULER_NAME)


def read_profile(fields: Fields, default_name: str) -> ProfileConfig:
    """Read one entry of `profiles`; errors are added to the fields' list."""
    name = fields.text("schedulerName", default_name)
    percentage = fields.optional_integer("percentageOfNodesToScore")
    if percentage is not None and not 0 <= percentage <= 100:
        fields.invalid("percentageOfNodesToScore", percentage, "not in valid range [0-100]")
    plugins: dict[str, PluginSet] = {}
    plugin_fields = fields.child("plugins")
    for point in (*[point.value for point in ExtensionPoint], MULTI_POINT):
        plugins[point] = _plugin_set(plugin_fields.child(point))
    plugin_fields.finish()
    args: dict[str, Mapping[str, Any]] = {}
    for entry in fields.children("pluginConfig"):
        plugin = entry.text("name", "")
        values = entry.child("args").data
        entry.finish()
        if not plugin:
            entry.required("name")
        elif plugin in args:
            entry.duplicate("", plugin)
        args[plugin] = {key: value for key, value in values.items() if key not in ("apiVersion", "kind")}
    fields.finish()
    return ProfileConfig(name, percentage, plugins, args, fields.path)


def _plugin_set(fields: Fields) -> PluginSet:
    enabled = []
    for entry in fields.children("enabled"):
        named = Named(entry.text("name", ""), entry.integer("weight", 0), entry.path)
        entry.finish()
        if not named.name:
            entry.required("name")
        enabled.append(named)
    disabled = set()
    for entry in fields.children("disabled"):
        disabled.add(entry.text("name", ""))
        entry.ignore("weight")
        entry.finish()
    fields.finish()
    return PluginSet(tuple(enabled), frozenset(disabled))


def build_profile(
    config: ProfileConfig, classes: Mapping[str, type[Plugin]], defaults: Sequence[Enabled]
) -> Profile:
    """Return the profile with everything expanded and in order.

    `defaults` are the default MultiPoint plugins; `classes` all plugins there are, by name.

    Raises:
        ProfileError: a plugin is unknown, enabled twice or missing.
    """
    for plugin_set in config.plugins.values():
        for named in plugin_set.enabled:
            if named.name not in classes:
                raise ProfileError(f'{named.path}.name: Invalid value: "{named.name}": plugin does not exist')
    for name in config.args:
        if name not in classes:
            raise ProfileError(f'{config.path}.pluginConfig: Invalid value: "{name}": plugin does not exist')
    default = PluginSet(tuple(Named(each.name, each.weight) for each in defaults))
    multi = _merged(default, config.plugins.get(MULTI_POINT, PluginSet()))
    points = {}
    for point, base in PLUGIN_BASES.items():
        own = config.plugins.get(point, PluginSet())
        points[point] = _expanded(point, base, own, multi, classes)
    profile = Profile(config.scheduler_name, points, config.args, config.percentage_of_nodes_to_score)
    sorters = len(points[ExtensionPoint.QUEUE_SORT])
    if sorters != 1:
        raise ProfileError(
            f"{config.path}.plugins.queueSort: exactly one queue sort plugin is required for profile with "
            f'scheduler name "{config.scheduler_name}", it has {sorters}'
        )
    if not points[ExtensionPoint.BIND]:
        raise ProfileError(
            f"{config.path}.plugins.bind: at least one bind plugin is needed for profile with scheduler name "
            f'"{config.scheduler_name}"'
        )
    return profile


def _merged(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Return the defaults not disabled, reconfigured ones in their old place, then the new ones."""
    of_custom = {named.name: named for named in custom.enabled}
    enabled: list[Named] = []
    if ALL not in custom.disabled:
        enabled = [
            of_custom.pop(named.name, named) for named in default.enabled if named.name not in custom.disabled
        ]
    enabled.extend(of_custom.values())
    return PluginSet(tuple(enabled), custom.disabled)


def _expanded(
    point: ExtensionPoint,
    base: type[Plugin],
    own: PluginSet,
    multi: PluginSet,
    classes: Mapping[str, type[Plugin]],
) -> tuple[Enabled, ...]:
    """Return the plugins of one extension point: its own settings take precedence over MultiPoint's.

    Order: those of MultiPoint that the point configures itself, in the point's order; the other ones of
    MultiPoint; then those that only the point names.
    """
    for named in own.enabled:
        if not issubclass(classes[named.name], base):
            raise ProfileError(
                f'{named.path}.name: Invalid value: "{named.name}": does not extend {point.value} plugin'
            )
    own_names = {named.name for named in own.enabled}
    from_multi: list[Named] = []
    overridden: set[str] = set()
    if ALL not in own.disabled:
        for named in multi.enabled:
            if not issubclass(classes[named.name], base) or named.name in own.disabled - own_names:
                continue
            if named.name in own_names:
                overridden.add(named.name)
            else:
                from_multi.append(named)
    ordered = [named for named in own.enabled if named.name in overridden]
    ordered += from_multi
    ordered += [named for named in own.enabled if named.name not in overridden]
    return tuple(Enabled(named.name, named.weight or 1) for named in ordered)
