"""The failpoints of a component, found in its sources: importing the modules would take seconds."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from nominee.localcluster.components import Component

# A constant that is a failpoint, or the name of a failpoint that another module declares
_DECLARATION = re.compile(
    r"""^_?[A-Z][A-Z_]*(?:\s*:[^=\n]+)?\s*=\s*(?:failpoints\.declare\(\s*)?["']([\w-]+(?:\.[\w-]+)+)["']""",
    re.M,
)


def failpoints(component: Component) -> list[str]:
    """Return the names of the failpoints that the modules of a component declare, sorted."""
    spec = importlib.util.find_spec(component.module)
    names = set()
    for folder in (spec.submodule_search_locations if spec is not None else None) or ():
        for path in Path(folder).rglob("*.py"):
            names.update(_DECLARATION.findall(path.read_text(encoding="utf-8")))
    # The autoscaler's package contains the cloud.
    return sorted(name for name in names if name.startswith(f"{component.name}."))
