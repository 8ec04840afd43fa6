"""NodeAffinity's queueing hint (its verdicts are held by the recorded cases)."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.machinery.api.selectors import SelectorError
from nominee.scheduler.framework.api.events import QueueingHint
from nominee.scheduler.framework.types import PodInfo
from tests.scheduler.builders import desk, node, pod


def needing(*expressions: dict[str, Any]) -> PodInfo:
    """A pod with a term for each of the expressions."""
    terms = [{"matchExpressions": [expression]} for expression in expressions]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return pod("p", affinity={"nodeAffinity": required})


def hint(wanted: PodInfo, labels: dict[str, str]) -> QueueingHint:
    plugin: Any = desk().framework.plugins["NodeAffinity"]
    [registration] = plugin.events_to_register()
    assert registration.hint is not None
    added = node("n1")
    added.metadata.labels.update(labels)
    found: QueueingHint = registration.hint(wanted, None, added)
    return found


BROKEN = {"key": "size", "operator": "Gt", "values": ["big"]}
IN_A = {"key": "zone", "operator": "In", "values": ["a"]}


def test_a_term_that_cannot_be_parsed_is_an_error_where_no_other_matches() -> None:
    with pytest.raises(SelectorError) as raised:
        hint(needing(BROKEN, IN_A), {"zone": "b"})
    assert str(raised.value).startswith("nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value")
    assert hint(needing(BROKEN, IN_A), {"zone": "a"}) is QueueingHint.Queue
    assert hint(needing(IN_A), {"zone": "b"}) is QueueingHint.Skip
