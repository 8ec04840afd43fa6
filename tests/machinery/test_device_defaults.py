"""Tolerations of device taints compare for equality unless they say otherwise."""

from __future__ import annotations

from nominee.machinery.api.pb import devices
from nominee.machinery.defaults.devices import claim, template
from nominee.machinery.features.gates import Gates, Version

GATES = Gates("apiserver", Version(1, 36), {})


def test_tolerations_of_requests_alternatives_and_results_have_an_operator() -> None:
    of = devices.ResourceClaim()
    request = of.spec.devices.requests.add()
    exactly = request.exactly.tolerations
    exactly.add(key="a")
    exactly.add(key="b", operator="Exists")
    request.firstAvailable.add().tolerations.add(key="c")
    of.status.allocation.devices.results.add().tolerations.add(key="d")
    claim(of, GATES)
    assert [each.operator for each in exactly] == ["Equal", "Exists"]
    assert request.firstAvailable[0].tolerations[0].operator == "Equal"
    assert of.status.allocation.devices.results[0].tolerations[0].operator == "Equal"


def test_a_claim_without_status_has_no_allocation() -> None:
    of = devices.ResourceClaim()
    claim(of, GATES)
    assert not of.HasField("status")


def test_tolerations_of_a_template_have_an_operator() -> None:
    of = devices.ResourceClaimTemplate()
    found = of.spec.spec.devices.requests.add().exactly.tolerations
    found.add(key="a")
    template(of, GATES)
    assert found[0].operator == "Equal"
