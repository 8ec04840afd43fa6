"""The objects that a controller owns, adopts and releases by its selector. Pure.

Source: kube-controller-manager 1.36, pkg/controller (BaseControllerRefManager.ClaimObject).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from nominee.machinery.api.kinds import Object
from nominee.machinery.api.objects import controller_of, is_terminating
from nominee.machinery.api.pb import meta
from nominee.machinery.api.selectors import LabelSelector

T = TypeVar("T", bound=Object)


@dataclass(frozen=True, slots=True)
class ClaimedObjects(Generic[T]):
    """The objects that an owner owns, adopts and releases."""

    owned: list[T]
    adopt: list[T]
    release: list[T]


def claim(
    owner: Object, selector: meta.LabelSelector, objects: Iterable[T], may_adopt: Callable[[T], bool]
) -> ClaimedObjects[T]:
    """Return own objects, matching orphans (to adopt) and own objects that no longer match (to release)."""
    matcher, ending = LabelSelector.from_message(selector), is_terminating(owner)
    claimed: ClaimedObjects[T] = ClaimedObjects([], [], [])
    for obj in objects:
        controller, matches = controller_of(obj), matcher.matches(obj.metadata.labels)
        if controller is None:
            if matches and not ending and may_adopt(obj):
                claimed.adopt.append(obj)
        elif controller.uid == owner.metadata.uid:
            if matches:
                claimed.owned.append(obj)
            elif not ending:
                claimed.release.append(obj)
    return claimed
