"""Every module of the controllers is a core that import-linter checks, or part of a shell."""

from __future__ import annotations

import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
CONTRACT = "The controllers' cores compute: no I/O, no event loop, no log"


def test_the_contract_names_every_module_outside_the_shells() -> None:
    config = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = config["tool"]["importlinter"]["contracts"]
    (contract,) = [each for each in contracts if each["name"] == CONTRACT]
    modules = {
        ".".join(("nominee", *path.relative_to(REPOSITORY).with_suffix("").parts))
        for path in (REPOSITORY / "controllers").rglob("*.py")
        if "shell" not in path.parts and path.stem not in ("__init__", "__main__")
    }
    shells = {
        ".".join(("nominee", *path.relative_to(REPOSITORY).parts))
        for path in (REPOSITORY / "controllers").rglob("shell")
    }

    assert set(contract["source_modules"]) == modules
    assert shells <= set(contract["forbidden_modules"])
