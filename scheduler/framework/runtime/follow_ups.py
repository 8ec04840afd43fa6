"""Join the follow-ups of several PostFilter plugins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nominee.scheduler.framework.api.io_steps import IoSteps, Run
from nominee.scheduler.framework.api.status import is_success
from nominee.scheduler.framework.interface import PostFilterResult, Status


def joined(results: Sequence[PostFilterResult], result: PostFilterResult | None) -> PostFilterResult | None:
    """Return the result, preceded by the follow-ups of `results`; the first that fails ends it all.

    Upstream's plugins write within PostFilter: those after one that fails are not asked.
    Source: kube-scheduler 1.36, RunPostFilterPlugins.
    """
    if result is None and results:
        *results, result = results
    if result is None or not results:
        return result

    def in_order() -> IoSteps[Status | None]:
        for each in results:
            status: Status | None = None if each.follow_up is None else (yield Run(each.follow_up()))
            if not is_success(status):
                return status
        return None

    return replace(result, preceding=in_order)
