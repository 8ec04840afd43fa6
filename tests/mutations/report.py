"""Print which exploration finds each mutation, in how many runs and seconds, as a Markdown table.

`python -m tests.mutations.report [--simulate] [MUTATION ...]`; the exit status is 1 if one is not found
within its budget.
"""

from __future__ import annotations

import argparse
import sys

from tests.mutations.catalogue import BY_NAME, MUTATIONS
from tests.mutations.hunting import Found, hunt


def main() -> int:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations.report", description=__doc__)
    parser.add_argument("--simulate", action="store_true", help="in simulations, not on real processes")
    parser.add_argument("mutations", nargs="*", metavar="MUTATION")
    given = parser.parse_args()
    chosen = [BY_NAME[name] for name in given.mutations] or list(MUTATIONS)
    print("| mutation | scenario | found by | runs | seconds | observed |")
    print("|---|---|---|---|---|---|")
    failed = False
    for mutation in chosen:
        found = hunt(mutation, simulate=given.simulate)
        failed = failed or bool(found.problem)
        print(row(found), flush=True)
    return 1 if failed else 0


def row(found: Found) -> str:
    """Return the row of one mutation."""
    mutated, hunted = found.mutated, found.hunt
    what = "the undisturbed run" if not mutated.case else f"`{mutated.case}`"
    if found.problem:
        what = f"**{found.problem}**"
    observed = mutated.observation.replace("|", "\\|").replace("\n", " ")
    short = observed if len(observed) <= 160 else f"{observed[:157]}..."
    return (
        f"| {found.mutation.name} | {hunted.name} | {what} | {mutated.runs} of {hunted.runs_max} "
        f"| {mutated.seconds:.0f} | {short} |"
    )


if __name__ == "__main__":
    sys.exit(main())
