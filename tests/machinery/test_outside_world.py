"""Time, randomness and task groups are arguments: only the clocks' own modules fetch them.

Ruff's banned-api covers the usual names at `make check`; this covers the rest, aliases included.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (
    *("machinery", "apiserver", "scheduler", "kubelet", "autoscaler", "controllers", "simulation", "nominee"),
)
MAY_READ_TIME = {
    "machinery/runtime/clock.py",
    "localcluster/supervisor/clock.py",  # the supervisor stays light: it loads neither protobuf nor anyio
}
BANNED = {
    "time": {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep",
             "gmtime",
             "localtime"},
    "datetime.datetime": {"now", "utcnow", "today"},
    "datetime.date": {"today"},
    "anyio": {"current_time"},
    "asyncio": {"create_task", "ensure_future", "sleep"},
    # A generator that is made with a seed, or passed in, is fine: random.Random.
    "random": {
        "random", "randint", "randrange", "uniform", "choice", "choices", "shuffle", "sample", "seed",
        "gauss", "expovariate", "normalvariate", "getrandbits",
    },
}  # fmt: skip


def imported(tree: ast.Module) -> dict[str, str]:
    """Local names and what they stand for: `import time as t` gives t -> time."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name] = alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (owner := dotted(node.value)):
        return f"{owner}.{node.attr}"
    return ""


def banned_uses(source: str) -> Iterator[str]:
    tree = ast.parse(source)
    names = imported(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name | ast.Attribute):
            continue
        head, _, rest = dotted(node).partition(".")
        full = names.get(head, "") + (f".{rest}" if rest else "")
        owner, _, name = full.rpartition(".")
        if name in BANNED.get(owner, ()):
            yield f"{node.lineno}: {full}"


def sources() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def test_nothing_else_reads_time_or_draws_lots() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{use}"
        for path in sources()
        if str(path.relative_to(ROOT)) not in MAY_READ_TIME
        for use in banned_uses(path.read_text(encoding="utf-8"))
    ]
    assert not found, "take a Clock, a random.Random or a task group as an argument:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.time()",
        "import time as t\nt.monotonic()",
        "from time import perf_counter as p\np()",
        "import datetime\ndatetime.datetime.now()",
        "from datetime import datetime\nwhen = datetime.utcnow",
        "import random\nrandom.shuffle([])",
        "from asyncio import create_task\ncreate_task(f())",
    ],
)
def test_the_search_finds(source: str) -> None:
    assert list(banned_uses(source))


@pytest.mark.parametrize(
    "source",
    [
        "def f(clock, rng):\n    clock.now(); rng.shuffle([])",
        "import random\nrng = random.Random(7)",
        "from datetime import datetime\ndatetime.fromisoformat('x')",
    ],
)
def test_the_search_lets_pass(source: str) -> None:
    assert not list(banned_uses(source))
