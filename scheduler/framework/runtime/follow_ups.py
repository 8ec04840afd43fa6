"""Join the follow-ups of several PostFilter plugins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nominee.scheduler.framework.api.io_steps import IoSteps, Run
from nominee.scheduler.framework.interface import PostFilterResult, Status


def joined(first: Sequence[PostFilterResult], result: PostFilterResult | None) -> PostFilterResult | None:
    """Return the result with its follow-up after those of `first`; the first failure ends it."""
    if not first:
        return result
    last = result or first[-1]
    follow_ups = [each.follow_up for each in (*first[: None if result else -1], last)]

    def all_of_them() -> IoSteps[Status | None]:
        for follow_up in follow_ups:
            status: Status | None = None if follow_up is None else (yield Run(follow_up()))
            if status is not None and not status.is_success:
                return status
        return None

    return replace(last, follow_up=all_of_them)
