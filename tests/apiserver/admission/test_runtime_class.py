"""What a pod gets from its RuntimeClass, without a server."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.apiserver.admission.interface import AdmissionRequest
from nominee.apiserver.admission.pods.runtime_class import RuntimeClassAdmission
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core, node
from nominee.machinery.wire import codec
from tests.apiserver.access.fakes import Objects


async def _admitted(pod: dict[str, Any], scheduling: dict[str, Any] | None) -> core.Pod:
    """The pod after admission, with a class that has such a `scheduling`."""
    document: dict[str, Any] = {"metadata": {"name": "c"}, "handler": "c"}
    if scheduling is not None:
        document["scheduling"] = scheduling
    objects = Objects()
    objects.put(kinds.RUNTIME_CLASS, codec.from_json(node.RuntimeClass, document))
    made = codec.from_json(
        core.Pod,
        {"metadata": {"name": "p", "namespace": "default"}, "spec": {"runtimeClassName": "c", **pod}},
    )
    request = AdmissionRequest("CREATE", kinds.POD, "default", "p", "", made)
    await RuntimeClassAdmission().admit(request, objects.lookup)
    return made


_A = {"key": "a", "operator": "Equal", "value": "1", "effect": "NoSchedule"}
_ANY_A = {"key": "a", "operator": "Exists"}
_B = {"key": "b", "operator": "Exists", "effect": "NoExecute"}
_B_10 = {**_B, "tolerationSeconds": 10}
_B_20 = {**_B, "tolerationSeconds": 20}


@pytest.mark.parametrize(
    ("own", "of_class", "merged"),
    [
        ([_A], [_B], [_A, _B]),
        ([_A], [_A], [_A]),
        ([_A], [_ANY_A], [_ANY_A]),
        ([_ANY_A], [_A], [_ANY_A]),
        ([_B_10], [_B], [_B]),
        ([_B], [_B_10], [_B]),
        ([_B_10], [_B_20], [_B_20]),
        ([_A, _B, _ANY_A], [], [_B, _ANY_A]),
        ([_A, _B], [{"operator": "Exists"}], [{"operator": "Exists"}]),
        ([{**_A, "operator": ""}], [_A], [{**_A, "operator": ""}]),
        ([_A], [{**_A, "operator": ""}], [{**_A, "operator": ""}]),
        ([_A, _ANY_A], None, [_A, _ANY_A]),
    ],
)
async def test_tolerations_that_another_covers_are_dropped(
    own: list[dict[str, Any]], of_class: list[dict[str, Any]] | None, merged: list[dict[str, Any]]
) -> None:
    scheduling = None if of_class is None else {"tolerations": of_class}
    found = await _admitted({"tolerations": own}, scheduling)
    assert [codec.to_json(each) for each in found.spec.tolerations] == [
        {name: value for name, value in each.items() if value != ""} for each in merged
    ]


async def test_a_conflict_of_node_selectors_names_the_fields() -> None:
    with pytest.raises(StatusError) as caught:
        await _admitted({"nodeSelector": {"os": "w"}}, {"nodeSelector": {"os": "l"}})
    assert caught.value.message.endswith(
        "conflict: runtimeClass.scheduling.nodeSelector[os] = l; pod.spec.nodeSelector[os] = w"
    )
