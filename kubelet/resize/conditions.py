"""The two conditions of a resize, as this process holds them: pending, and in progress.

They are written to the API with the next status. Source: kubelet 1.36, status manager; KEP-1287, "Resize
status".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

PENDING = "PodResizePending"
IN_PROGRESS = "PodResizeInProgress"
DEFERRED = "Deferred"
INFEASIBLE = "Infeasible"
ERROR = "Error"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeCondition:
    """One condition; `since` and `probed` in seconds since the epoch, `order` counts transitions on the node.

    Two transitions may fall into the same instant; `order` tells which was first.
    """

    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    since: float = 0.0
    probed: float = 0.0
    order: int = 0


def pending(
    old: ResizeCondition | None, *, reason: str, message: str, generation: int, now: float, order: int
) -> tuple[ResizeCondition, bool]:
    """The pending condition after an evaluation, and whether that is worth an event.

    Every reason but Infeasible reads Deferred. The transition time moves only with the reason.
    """
    reason = reason if reason == INFEASIBLE else DEFERRED
    new = ResizeCondition(
        reason=reason, message=message, observed_generation=generation, since=now, probed=now, order=order
    )
    if old is not None and old.reason == reason:
        new = replace(new, since=old.since, order=old.order)
    told = old is not None and (old.reason, old.observed_generation) == (reason, generation)
    return new, not told


def in_progress(
    old: ResizeCondition | None,
    *,
    generation: int,
    now: float,
    order: int,
    reason: str = "",
    message: str = "",
) -> tuple[ResizeCondition, bool]:
    """The in-progress condition, and whether that is worth an event.

    Set again without a reason it keeps all it had; an error keeps the generation that was being actuated.
    """
    if old is None:
        return (
            ResizeCondition(
                reason=reason,
                message=message,
                observed_generation=generation,
                since=now,
                probed=now,
                order=order,
            ),
            True,
        )
    if not reason and not message:
        return replace(old, probed=now), False
    changed = (old.reason, old.message) != (reason, message)
    new = replace(old, reason=reason, message=message, probed=now)
    if old.reason != reason:
        new = replace(new, since=now, order=order)
    return new, changed
