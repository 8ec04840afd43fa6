"""Check the project's words, sizes and docstrings: `python -m tests.style [--lower | --all] [PATH ...]`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.style import ceilings
from tests.style.report import all_findings


def main() -> int:
    """Print the findings above the ceilings, and return 1 where there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.style", description=__doc__)
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="print every finding below these folders or files"
    )
    parser.add_argument("--all", action="store_true", help="print every finding, also those below a ceiling")
    parser.add_argument(
        "--lower", action="store_true", help="lower the ceilings to the numbers that were found"
    )
    options = parser.parse_args()
    found = all_findings()
    limits = ceilings.read_ceilings()
    if options.lower:
        ceilings.CEILINGS_FILE.write_text(ceilings.lower(found, limits))
    over = ceilings.over_ceilings(found, limits)
    if options.paths:
        shown = [each for each in found if each.path.startswith(tuple(options.paths))]
    else:
        shown = found if options.all else over
    for each in shown:
        print(each)
    if over:
        counts = Counter((each.rule, each.package) for each in over)
        print("\nAbove the ceilings (tests/style/ceilings.toml):", file=sys.stderr)
        for (rule, package), count in sorted(counts.items()):
            limit = limits.get(rule, {}).get(package, 0)
            print(f"  {rule} in {package}: {count}, at most {limit}", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
