"""What nodes may say of themselves."""

from __future__ import annotations

import pytest

from tests.apiserver.rest.asgi import in_memory

_NODES = "/api/v1/nodes"


@pytest.mark.parametrize(
    ("cidrs", "problem"),
    [
        (["10.0.0.0/24"], ""),
        (["10.0.0.0/24", "fd00::/64"], ""),
        (["10.0.0.0"], "spec.podCIDRs[0]: Invalid value"),
        (["10.0.0.0/24", "10.0.1.0/24"],
         'spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]:'
         " may specify no more than one CIDR for each IP family"),
    ],
)  # fmt: skip
async def test_ranges_of_pods(cidrs: list[str], problem: str) -> None:
    document = {"metadata": {"name": "n"}, "spec": {"podCIDR": cidrs[0], "podCIDRs": cidrs}}
    reply = await (await in_memory()).json("POST", _NODES, document)
    assert reply.code == (422 if problem else 201), reply.body
    if problem:
        assert reply.document["message"].startswith(f'Node "n" is invalid: {problem}')


async def test_the_external_id_stays() -> None:
    rest = await in_memory()
    made = await rest.json("POST", _NODES, {"metadata": {"name": "n"}, "spec": {"externalID": "a"}})
    document = made.document
    document["spec"]["externalID"] = "b"
    reply = await rest.json("PUT", f"{_NODES}/n", document)
    assert reply.code == 422
    assert reply.document["message"] == 'Node "n" is invalid: spec.externalID: Forbidden: may not be updated'


async def test_dynamic_configuration_is_dropped_from_a_new_node() -> None:
    """The fields are left of a feature that is gone since 1.24."""
    document = {
        "metadata": {"name": "n"},
        "spec": {"configSource": {"configMap": {"name": "c", "namespace": "d", "kubeletConfigKey": "k"}}},
        "status": {"config": {"error": "x"}},
    }
    made = (await (await in_memory()).json("POST", _NODES, document)).document
    assert "configSource" not in made["spec"]
    assert "config" not in made["status"]
