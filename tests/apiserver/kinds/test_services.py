"""What a Service keeps that changes its type (kube-apiserver 1.36, dropTypeDependentFields)."""

from __future__ import annotations

import pytest

from nominee.apiserver.kinds.core.services.carry_over import drop_of_old_type
from nominee.machinery.api.pb import core

ADDRESS = "10.0.0.7"


def with_address() -> core.ServiceSpec:
    return core.ServiceSpec(
        type="ClusterIP",
        clusterIP=ADDRESS,
        clusterIPs=[ADDRESS],
        ipFamilies=["IPv4"],
        ipFamilyPolicy="SingleStack",
    )


@pytest.mark.parametrize("address", [ADDRESS, ""], ids=["kept", "removed by the client"])
def test_a_name_outside_of_the_cluster_has_no_families(address: str) -> None:
    new, old = with_address(), with_address()
    new.type, new.clusterIP, new.clusterIPs[:] = "ExternalName", address, [address] if address else []
    drop_of_old_type(new, old)
    assert new == core.ServiceSpec(type="ExternalName", clusterIP="")


def test_what_the_client_has_changed_stays() -> None:
    new, old = with_address(), with_address()
    new.type, new.ipFamilyPolicy = "ExternalName", "PreferDualStack"
    drop_of_old_type(new, old)
    assert new == core.ServiceSpec(type="ExternalName", clusterIP="", ipFamilyPolicy="PreferDualStack")
