"""Turn links between etcd members that are cut and healed into the steps of a scenario. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from nominee.machinery.wire.scalars import Json

Link = frozenset[str]
"""The two members."""


def link_steps(before: Mapping[Link, bool], now: Mapping[Link, bool]) -> list[dict[str, Json]]:
    """Return the steps between two states of the links, which say whether each is cut.

    One step is for all links of a member. A link that is not in `before` has not changed.
    """
    members = sorted(frozenset().union(*now))
    steps: list[dict[str, Json]] = []
    for action, is_cut in (("cut", True), ("off", False)):
        changed = {link for link, cut in now.items() if cut is is_cut and before.get(link, cut) is not cut}
        for member in members:
            own = {link for link in changed if member in link}
            if len(own) > 1 and len(own) == len(members) - 1:
                steps.append({"fault": {"component": member, "action": action}})
                changed -= own
        for one, other in sorted(map(sorted, changed)):
            steps.append({"fault": {"component": one, "to": other, "action": action}})
    return steps
