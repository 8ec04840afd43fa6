"""How many findings each package may still have; the numbers only fall, and the aim is an empty file."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.style.findings import Finding

CEILINGS_FILE = Path(__file__).with_name("ceilings.toml")
HEAD = """\
# Findings that packages may still have, by rule: `python -m tests.style --lower` writes this file with lower
# numbers. A package that is not named may have none. Never raise a number.
"""

Ceilings = Mapping[str, Mapping[str, int]]


def read_ceilings(file: Path = CEILINGS_FILE) -> Ceilings:
    """Read the ceilings by rule and package."""
    tables: Ceilings = tomllib.loads(file.read_text())
    return tables


def over_ceilings(findings: Iterable[Finding], ceilings: Ceilings) -> list[Finding]:
    """Return all findings of the packages that have more of them than their ceiling, by rule."""
    found = list(findings)
    counts = Counter((each.rule, each.package) for each in found)
    over = {key for key, count in counts.items() if count > ceilings.get(key[0], {}).get(key[1], 0)}
    return sorted(each for each in found if (each.rule, each.package) in over)


def lower(findings: Iterable[Finding], ceilings: Ceilings) -> str:
    """Return the text of the ceilings file with each number lowered to the number of findings."""
    counts = Counter((each.rule, each.package) for each in findings)
    lines = [HEAD]
    for rule, packages in sorted(ceilings.items()):
        rows = {name: min(limit, counts[rule, name]) for name, limit in sorted(packages.items())}
        lines.append(
            f"[{rule}]\n" + "".join(f'"{name}" = {count}\n' for name, count in rows.items() if count)
        )
    return "\n".join(lines)
