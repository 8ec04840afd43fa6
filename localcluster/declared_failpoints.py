"""The failpoints of a component, found in its sources: importing the modules would take seconds.

`python -m nominee.localcluster.declared_failpoints` prints the tables of docs/failpoints.md.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from nominee.localcluster.components import COMPONENTS, Component

_TEXT = r"""(?:"(?:[^"\\\n]|\\.)*"\s*)+"""
_DECLARATION = re.compile(rf"failpoints\.declare\(\s*({_TEXT}),\s*({_TEXT}),?\s*\)")
_TITLES = {"apiserver": "API server", "cloud": "Cloud provider"}


def sentences(component: Component) -> Mapping[str, str]:
    """Return the failpoints that the modules of a component declare, with the sentence of each.

    They are in the order of the modules' paths, and in a module in the order of declaration.
    """
    spec = importlib.util.find_spec(component.module)
    declared = {}
    for folder in (spec.submodule_search_locations if spec is not None else None) or ():
        for path in sorted(Path(folder).rglob("*.py")):
            for name, sentence in _DECLARATION.findall(path.read_text(encoding="utf-8")):
                declared[ast.literal_eval(name)] = ast.literal_eval(f"({sentence})")
    # The autoscaler's package contains the cloud.
    return {name: text for name, text in declared.items() if name.startswith(f"{component.name}.")}


def failpoints(component: Component) -> list[str]:
    """Return the names of the failpoints that the modules of a component declare, sorted."""
    return sorted(sentences(component))


def all_sentences() -> Mapping[str, str]:
    """Return the failpoints of all components, with the sentence of each."""
    return {name: text for component in COMPONENTS for name, text in sentences(component).items()}


def page() -> Iterator[str]:
    """Yield the lines of docs/failpoints.md that have the failpoints."""
    for component in COMPONENTS:
        if declared := sentences(component):
            yield f"### {_TITLES.get(component.name, component.name.capitalize())}"
            yield ""
            yield "| failpoint | when it is hit |"
            yield "|---|---|"
            yield from (f"| `{name}` | {sentence} |" for name, sentence in declared.items())
            yield ""


if __name__ == "__main__":
    print("\n".join(page()))
