"""Creating an object on which nothing acts answers with a warning that says so."""

from __future__ import annotations

from nominee.machinery.api.kinds import CONFIG_MAP, INGRESS, NETWORK_POLICY
from tests.apiserver.fronts.adapter import Api, Document

POLICY: Document = {"metadata": {"name": "x"}, "spec": {"podSelector": {}}}
WARNING = "nominee: nothing acts on NetworkPolicy"


def test_the_warning_is_of_the_creation_alone(api: Api, space: str) -> None:
    created = api.create(NETWORK_POLICY, POLICY, space)
    assert (created.code, created.warnings) == (200, (WARNING,))
    assert api.get(NETWORK_POLICY, "x", space).warnings == ()
    changed = {**created.document, "spec": {"podSelector": {"matchLabels": {"a": "b"}}}}
    assert api.update(NETWORK_POLICY, changed, space).warnings == ()
    again = api.create(NETWORK_POLICY, POLICY, space)
    assert again.code == 409


def test_a_generated_name_warns_once(api: Api, space: str) -> None:
    named = {**POLICY, "metadata": {"generateName": "x-"}}
    assert api.create(NETWORK_POLICY, named, space).warnings == (WARNING,)
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    ingress = {"metadata": {"name": "x"}, "spec": {"defaultBackend": backend}}
    assert api.create(INGRESS, ingress, space).warnings == ("nominee: nothing acts on Ingress",)


def test_data_needs_no_actor(api: Api, space: str) -> None:
    assert api.create(CONFIG_MAP, {"metadata": {"name": "x"}}, space).warnings == ()
