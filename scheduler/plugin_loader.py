"""Load plugins from outside: by entry point group `nominee.scheduler_plugins`, or by `module:Class`.

A module is found where Python finds any, and also in the folders of `search_also`: the process runs with
`python -P`, which leaves out the working directory, so that a stray file there cannot hide one of ours.
"""

from __future__ import annotations

import importlib
import reprlib
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from nominee.scheduler.framework.interface import Plugin

GROUP: Final = "nominee.scheduler_plugins"


class PluginLoadError(ValueError):
    """A plugin cannot be loaded; the text has the plugin and the reason."""


def search_also(folders: Iterable[Path]) -> None:
    """Find modules in these folders too, behind every other place."""
    for folder in map(str, folders):
        if folder not in sys.path:
            sys.path.append(folder)


@cache
def installed() -> dict[str, type[Plugin]]:
    """Return all plugins that installed distributions offer, by the entry point's name."""
    return {point.name: plugin_class(point.load(), point.value) for point in entry_points(group=GROUP)}


def by_path(path: str) -> type[Plugin]:
    """Return the class of `package.module:Class`."""
    module_name, separator, class_name = path.partition(":")
    if not separator or not module_name or not class_name:
        raise PluginLoadError(f'plugin "{path}": expected module:Class')
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise PluginLoadError(f'plugin "{path}": {error}') from error
    except Exception as error:  # the module is another's: it may do anything while it is imported
        raise PluginLoadError(f'plugin "{path}": {type(error).__name__}: {error}') from error
    return plugin_class(found, path)


def all_classes(in_tree: Mapping[str, type[Plugin]], paths: Iterable[str]) -> dict[str, type[Plugin]]:
    """Return in-tree plugins, installed ones, and those of the paths, by their unique names."""
    classes = dict(in_tree)
    others = [*installed().items(), *((found.name, found) for found in map(by_path, paths))]
    for name, found in others:
        if classes.get(name, found) is not found:
            raise PluginLoadError(f'a plugin named "{name}" already exists')
        classes[name] = found
    return classes


def plugin_class(found: object, where: str = "") -> type[Plugin]:
    """Return a plugin's class; `where` is its path, by default that of the class.

    Raises: PluginLoadError: it is no class of a plugin, or has no name.
    """
    if isinstance(found, type):
        where, kind = where or f"{found.__module__}:{found.__qualname__}", "another class"
    else:
        where, kind = where or reprlib.repr(found), f"an instance of {type(found).__name__}"
    if not isinstance(found, type) or not issubclass(found, Plugin):
        expected = "a subclass of nominee.scheduler.framework.interface.Plugin"
        raise PluginLoadError(f'plugin "{where}": expected {expected}, got {kind}')
    if not isinstance(getattr(found, "name", None), str):
        raise PluginLoadError(f'plugin "{where}": its class has no name = "..." for profiles to use')
    return found
