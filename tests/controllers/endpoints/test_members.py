"""Which pods each Service selects, and which Services a change of a pod concerns."""

from __future__ import annotations

import pytest

from nominee.controllers.endpoints.members import Members
from nominee.machinery.api.objects import ObjectKey, key_of
from nominee.machinery.api.pb import core
from tests.controllers.endpoints.builders import backend, service

WEB = ObjectKey("default", "web")
LABELS = {"app": "web"}


def _pod(number: int, *, ready: bool = True) -> core.Pod:
    return backend(number, labels=LABELS, ready=ready)


def test_a_service_has_the_pods_that_it_selects() -> None:
    members = Members()
    one, other = _pod(0), backend(1, labels={"app": "other"})
    members.set_service(service(), lambda _: [one, other])
    assert members.of(WEB) == [key_of(one)]
    assert members.set_pod(None, _pod(2)) == [WEB]
    assert members.of(WEB) == [key_of(one), key_of(_pod(2))]
    members.remove_service(WEB)
    assert members.of(WEB) == []
    assert members.set_pod(None, _pod(3)) == []


def test_a_pod_concerns_its_service_when_its_endpoint_changes() -> None:
    members = Members()
    one = _pod(0)
    members.set_service(service(), lambda _: [one])
    assert members.set_pod(one, one) == []
    assert members.set_pod(one, _pod(0, ready=False)) == [WEB]
    assert members.set_pod(one, backend(0, labels={})) == [WEB], "it is no longer selected"
    assert members.remove_pod(key_of(one)) == []
    members.set_pod(None, one)
    assert members.remove_pod(key_of(one)) == [WEB]


def test_pods_are_listed_for_a_new_selector_only() -> None:
    members = Members()
    members.set_service(service(), lambda _: [])

    def unexpected(_: str) -> list[core.Pod]:
        raise AssertionError("the selector is the same")

    members.set_service(service(), unexpected)
    with pytest.raises(AssertionError):
        members.set_service(service(selector={"app": "other"}), unexpected)
