"""Load a scheduler configuration file, and the plugins and profiles that it needs.

Used by the scheduler's process and by commands that decide as it would (`nominee explain`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nominee.machinery.process.component import BadConfiguration
from nominee.scheduler.configuration.config import ConfigError, SchedulerConfig, load
from nominee.scheduler.configuration.profiles import ProfileError, build_profile
from nominee.scheduler.framework.interface import Plugin
from nominee.scheduler.framework.runtime.profile import Enabled, Profile
from nominee.scheduler.plugin_loader import PluginLoadError, all_classes
from nominee.scheduler.plugins import registry


def read_config(path: str) -> SchedulerConfig:
    """Return the configuration of a file, or the default one.

    Raises:
        BadConfiguration: the file cannot be read or is invalid.
    """
    if not path:
        return SchedulerConfig()
    try:
        return load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise BadConfiguration(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, ConfigError) as error:
        raise BadConfiguration(f"{path}: {error}") from None


def read_profiles(
    config: SchedulerConfig, plugins: Sequence[str], defaults: Sequence[Enabled] = registry.DEFAULT_PLUGINS
) -> tuple[dict[str, type[Plugin]], list[Profile]]:
    """Return the plugin classes by name, and the profiles built of them.

    Raises:
        BadConfiguration: a plugin cannot be loaded or a profile is invalid.
    """
    try:
        classes = all_classes(registry.IN_TREE, plugins)
        profiles = [build_profile(profile, classes, defaults) for profile in config.profiles]
    except (PluginLoadError, ProfileError) as error:
        raise BadConfiguration(str(error)) from None
    return classes, profiles


def plugin_folders(config_path: str) -> list[Path]:
    """Return where a user's own plugins lie: beside the configuration, or where the cluster was started."""
    beside = [Path(config_path).absolute().parent] if config_path else []
    return [*beside, Path.cwd()]
