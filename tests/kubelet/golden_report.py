"""`python -m tests.kubelet.golden_report`: how many golden cases pass, by file and family.

A case's family is its name up to the first hyphen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tests.kubelet import test_actuation_golden, test_preemption_golden, test_sequences_golden
from tests.support.recordings import Case, read

CHECKS: dict[str, Callable[[Case], None]] = {
    "kubelet.jsonl": test_sequences_golden.test_sequence,
    "kubelet_actuation.jsonl": test_actuation_golden.test_order,
    "kubelet_preemption.jsonl": test_preemption_golden.test_victims,
}


def main() -> int:
    """Prints the counts; the number of cases that failed."""
    failed_in_all = 0
    for file, check in CHECKS.items():
        passed, failed = Counter[str](), Counter[str]()
        for case in read(file):
            family = case["name"].partition("-")[0]
            try:
                check(case)
            except AssertionError as error:
                failed[family] += 1
                print(f"{file} {case['name']}: {str(error).splitlines()[0]}")
            else:
                passed[family] += 1
        print(f"{file}: {passed.total()} passed, {failed.total()} failed")
        for family in sorted(passed | failed):
            print(f"  {family}: {passed[family]} passed, {failed[family]} failed")
        failed_in_all += failed.total()
    return failed_in_all


if __name__ == "__main__":
    raise SystemExit(min(main(), 1))
