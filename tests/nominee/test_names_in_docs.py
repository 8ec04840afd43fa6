"""Every module that a package's docstring names exists, and every path that a page of the docs names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPONENTS = (
    *("apiserver", "autoscaler", "controllers", "kubelet", "lab", "localcluster", "machinery", "nominee"),
    *("scheduler", "simulation", "testing"),
)
PACKAGES = [path for name in COMPONENTS for path in sorted((ROOT / name).rglob("__init__.py"))]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
FILES = [
    f"/{path.relative_to(ROOT)}"
    for top in (*COMPONENTS, "docs", "examples", "proto", "scenarios", "src", "tests")
    for path in (ROOT / top, *(ROOT / top).rglob("*"))
]
FILES += [f"/{path.name}" for path in ROOT.iterdir() if path.is_file()]
# In a docstring: `name`, `name.function`, `folder/`, `file.py`; a file may also stand without backquotes.
NAME = re.compile(r"`([a-z_]\w*(?:[./][a-z_]\w*)*/?)`|(?<![\w/`-])((?:[\w-]+/)*[\w-]+\.(?:py|md|txt))\b")
PATH = re.compile(r"`((?:[\w-]+/)+|(?:[\w-]+/)*[\w-]+\.(?:py|tsv|toml|txt|ya?ml|jsonl))`")
ANCHOR = re.compile(r"\]\(([^)#:]*)#([^)]+)\)")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
# A provisioner and a Service
NO_MODULES = {"delayed.nominee.dev", "kubernetes"}
# Made by `make setup`
GENERATED = {"build/"}
STATE_DIRECTORY = "D/"


def _defines(module: Path, name: str) -> bool:
    return (
        re.search(rf"^(async def|def|class) {name}\b|^{name}\b", module.read_text("utf-8"), re.M) is not None
    )


def _resolves(package: Path, name: str) -> bool:
    """Report whether the name is a module, a folder, a file, or a definition in one of the modules."""
    top = ROOT / package.relative_to(ROOT).parts[0]
    slashed = (
        name.rstrip("/") if "/" in name or re.search(r"\.(py|md|txt|tsv)$", name) else name.replace(".", "/")
    )
    for base in (package, package.parent, top, ROOT):
        target = base / slashed
        if target.exists() or target.with_name(f"{target.name}.py").exists():
            return True
        module = target.parent.with_name(f"{target.parent.name}.py")
        if "." in name and module.exists() and _defines(module, target.name):
            return True
    return any(_defines(module, name) for module in package.glob("*.py"))


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _is_in_the_tree(path: str) -> bool:
    """Report whether a file or folder has this path, or ends with it."""
    ending = f"/{path.rstrip('/')}"
    return any(file.endswith(ending) for file in FILES)


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: str(path.parent.relative_to(ROOT)))
def test_names_in_the_docstring_of_a_package(path: Path) -> None:
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    names = {quoted or plain for quoted, plain in NAME.findall(text)} - NO_MODULES
    assert [name for name in sorted(names) if not _resolves(path.parent, name)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_in_a_page(page: Path) -> None:
    text = page.read_text("utf-8")
    paths = {path for path in PATH.findall(text) if not path.startswith(STATE_DIRECTORY)} - GENERATED
    gone = [path for path in sorted(paths) if not _is_in_the_tree(path)]
    gone += [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    for target, anchor in ANCHOR.findall(text):
        linked = page.parent / target if target else page
        if linked.suffix == ".md" and linked.exists() and anchor not in _anchors(linked):
            gone.append(f"{target}#{anchor}")
    assert gone == []
