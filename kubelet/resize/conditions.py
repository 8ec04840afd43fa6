"""The two conditions of a resize, as the kubelet keeps them: pending, and in progress.

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

    Two transitions may fall into the same instant; `order` says which was first.
    """

    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    since: float = 0.0
    probed: float = 0.0
    order: int = 0


def pending(old: ResizeCondition | None, new: ResizeCondition) -> ResizeCondition:
    """Return the pending condition after an evaluation: its transition time moves only with the reason."""
    if old is not None and old.reason == new.reason:
        return replace(new, since=old.since, order=old.order)
    return new


def is_new_pending(old: ResizeCondition | None, *, reason: str, generation: int) -> bool:
    """Return whether a pending condition is worth an event: another reason, or another generation."""
    return old is None or (old.reason, old.observed_generation) != (reason, generation)


def in_progress(old: ResizeCondition | None, new: ResizeCondition) -> ResizeCondition:
    """Return the in-progress condition.

    Set again without a reason it keeps all it had; an error keeps the generation that is being actuated.
    """
    if old is None:
        return new
    if not new.reason and not new.message:
        return replace(old, probed=new.probed)
    kept = replace(new, observed_generation=old.observed_generation)
    return kept if old.reason != new.reason else replace(kept, since=old.since, order=old.order)


def is_new_error(old: ResizeCondition | None, message: str) -> bool:
    """Return whether an error of the actuation is worth an event."""
    return old is None or (old.reason, old.message) != (ERROR, message)
