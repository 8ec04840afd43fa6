"""The rules of a Job's successPolicy. Pure.

Source: kube-controller-manager 1.36, pkg/controller/job/success_policy.go; KEP-3998.
"""

from __future__ import annotations

from collections.abc import Set

from nominee.machinery.api.pb import batch
from nominee.machinery.wire.values import index_ranges


def matching_rule(job: batch.Job, completed: Set[int]) -> str:
    """Return the message that names the first rule that the completed indexes fulfil, or ""."""
    for number, rule in enumerate(job.spec.successPolicy.rules if completed else ()):
        if rule.HasField("succeededIndexes"):
            required = index_ranges.parse(rule.succeededIndexes, job.spec.completions)
            reached = required & completed
            enough = rule.HasField("succeededCount") and len(reached) >= rule.succeededCount
            fulfilled = bool(required) and (reached == required or enough)
        else:
            fulfilled = rule.HasField("succeededCount") and len(completed) >= rule.succeededCount
        if fulfilled:
            return f"Matched rules at index {number}"
    return ""
