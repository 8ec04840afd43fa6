"""Check that the proof of each unseen mutation fails with it, and passes without.

Run it by `python -m tests.mutations.reach [NAME ...]`. With names only these are checked. The exit status is
1 where a proof passes with its mutation, or fails without one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.mutations.mutated import VARIABLE
from tests.mutations.unseen.table import UNSEEN, UNSEEN_BY_NAME
from tests.mutations.unseen.unseen import Unseen

ROOT: Final = Path(__file__).resolve().parents[2]
SECONDS_MAX: Final = 300.0
_PASSED, _FAILED = 0, 1  # exit statuses of pytest; there are others for errors of its own
Run = Callable[[Sequence[str], str], int]


def run_tests(proofs: Sequence[str], mutation: str) -> int:
    """Run tests with a mutation ("": without) in a process of their own; return pytest's exit status."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider"]
    result = subprocess.run(
        [*command, "-p", "tests.mutations.mutated", *proofs],
        cwd=ROOT,
        env={**os.environ, VARIABLE: mutation},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=SECONDS_MAX,
        check=False,
    )
    return result.returncode


def problem_of(unseen: Unseen, run: Run = run_tests) -> str:
    """Return why the proof does not show the mutation, "" where it does."""
    if not unseen.proof:
        return "has no proof"
    status = run([unseen.proof], unseen.mutation.name)
    if status == _PASSED:
        return f"{unseen.proof} passes with it"
    return "" if status == _FAILED else f"{unseen.proof} cannot be run (pytest ended with {status})"


def unmutated_problem(chosen: Sequence[Unseen], run: Run = run_tests) -> str:
    """Return why the proofs cannot be believed: one fails without a mutation."""
    proofs = sorted({unseen.proof for unseen in chosen if unseen.proof})
    return "without a mutation a proof fails" if proofs and run(proofs, "") != _PASSED else ""


def main(argv: list[str]) -> int:
    """Check the proofs one after the other, and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations.reach")
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*UNSEEN_BY_NAME, []])
    names = parser.parse_args(argv).names
    chosen = [UNSEEN_BY_NAME[name] for name in names] or list(UNSEEN)
    problems = [unmutated_problem(chosen)]
    print(problems[0] or "without a mutation all proofs pass", flush=True)
    for unseen in chosen:
        problems.append(problem_of(unseen))
        print(f"{unseen.mutation.name}: {problems[-1] or 'reached'}", flush=True)
    return 1 if any(problems) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
