"""The rules of a Job's successPolicy. Pure.

Source: kube-controller-manager 1.36, pkg/controller/job/success_policy.go; KEP-3998.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Set

from nominee.machinery.api.pb import batch
from nominee.machinery.wire.values import index_ranges


def matching_rule(job: batch.Job, completed: Set[int]) -> str:
    """Return the message that names the first rule that the completed indexes fulfil, or ""."""
    for number, rule in enumerate(job.spec.successPolicy.rules if completed else ()):
        if rule.HasField("succeededIndexes"):
            # Ranges that follow each other, and not a set: "0-2000000000" is valid.
            required = [*filter(None, index_ranges.ranges(rule.succeededIndexes, job.spec.completions))]
            starts = [each.start for each in required]
            reached = sum(index in required[bisect(starts, index) - 1] for index in completed if required)
            enough = rule.HasField("succeededCount") and reached >= rule.succeededCount
            fulfilled = bool(required) and (reached == sum(map(len, required)) or enough)
        else:
            fulfilled = rule.HasField("succeededCount") and len(completed) >= rule.succeededCount
        if fulfilled:
            return f"Matched rules at index {number}"
    return ""
