"""What the plugin ServiceAccount makes of a pod (upstream 1.36, plugin/pkg/admission/serviceaccount)."""

from __future__ import annotations

import random
from typing import Any

import anyio
import pytest

from nominee.apiserver.admission.pods.service_account import ENFORCE, TOKEN_PATH, ServiceAccount
from nominee.machinery.runtime.clock import FakeClock
from tests.apiserver.rest.asgi import Reply, Rest, in_memory
from tests.support.patience import PATIENCE_SECONDS

CORE = "/api/v1/namespaces/default"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def rest(clock: FakeClock) -> Rest:
    return await in_memory(ServiceAccount(clock, random.Random(1)), clock=clock)


async def account(rest: Rest, name: str = "default", *, metadata: Any = None, **more: Any) -> None:
    document = {"metadata": {"name": name, **(metadata or {})}, **more}
    reply = await rest.json("POST", f"{CORE}/serviceaccounts", document)
    assert reply.code == 201, reply.body


async def pod(rest: Rest, name: str = "p", **spec: Any) -> Reply:
    spec = {"containers": [{"name": "c", "image": "i"}], **spec}
    return await rest.json("POST", f"{CORE}/pods", {"metadata": {"name": name}, "spec": spec})


def refused(reply: Reply, problem: str) -> None:
    assert reply.code == 403, reply.body
    assert reply.document["message"] == f'pods "p" is forbidden: {problem}'


async def test_a_pod_gets_the_account_and_its_token(rest: Rest) -> None:
    await account(rest, imagePullSecrets=[{"name": "pull"}])
    spec = (await pod(rest, initContainers=[{"name": "i", "image": "i"}])).document["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    (volume,) = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert volume["projected"] == {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{
                "path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
        ],
    }  # fmt: skip
    mount = {"name": volume["name"], "readOnly": True, "mountPath": TOKEN_PATH}
    assert [one["volumeMounts"] for one in (*spec["initContainers"], *spec["containers"])] == [[mount]] * 2


async def test_who_wants_no_token_gets_none(rest: Rest) -> None:
    await account(rest)
    await account(rest, "quiet", automountServiceAccountToken=False)
    assert "volumes" not in (await pod(rest, automountServiceAccountToken=False)).document["spec"]
    assert "volumes" not in (await pod(rest, "q", serviceAccountName="quiet")).document["spec"]
    loud = await pod(rest, "r", serviceAccountName="quiet", automountServiceAccountToken=True)
    assert len(loud.document["spec"]["volumes"]) == 1
    own = {"name": "mine", "emptyDir": {}}
    mount = {"name": "mine", "mountPath": TOKEN_PATH}
    container = {"name": "c", "image": "i", "volumeMounts": [mount]}
    kept = (await pod(rest, "s", volumes=[own], containers=[container])).document["spec"]
    assert [one["name"] for one in kept["volumes"]] == ["mine"]


async def test_an_account_that_is_not_there(rest: Rest) -> None:
    reply = await pod(rest, serviceAccountName="missing")
    refused(reply, 'error looking up service account default/missing: serviceaccount "missing" not found')


async def test_the_default_account_is_waited_for(rest: Rest, clock: FakeClock) -> None:
    replies: list[Reply] = []

    async def create() -> None:
        replies.append(await pod(rest))

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(create)
            await clock.wait_for_sleepers(1)
            await account(rest)
            await clock.advance(1.0)
    assert replies[0].code == 201, replies[0].body


async def test_the_first_name_of_the_field_counts_where_the_other_is_missing() -> None:
    rest = await in_memory()
    made = (await pod(rest, serviceAccount="old")).document["spec"]
    assert (made["serviceAccountName"], made["serviceAccount"]) == ("old", "old")
    made = (await pod(rest, "q", serviceAccountName="new", serviceAccount="old")).document["spec"]
    assert (made["serviceAccountName"], made["serviceAccount"]) == ("new", "new")


def variable(secret: str) -> dict[str, Any]:
    return {"name": "V", "valueFrom": {"secretKeyRef": {"name": secret, "key": "k"}}}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"volumes": [{"name": "v", "secret": {"secretName": "x"}}]},
         'volume with secret.secretName="x" is not allowed because service account default does not'
         " reference that secret"),
        ({"containers": [{"name": "c", "image": "i", "env": [variable("x")]}]},
         'container c with envVar V referencing secret.secretName="x" is not allowed because service account'
         " default does not reference that secret"),
        ({"containers": [{"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": "x"}}]}]},
         'container c with envFrom referencing secret.secretName="x" is not allowed because service account'
         " default does not reference that secret"),
        ({"imagePullSecrets": [{"name": "x"}]},
         'imagePullSecrets[0].name="x" is not allowed because service account default does not reference'
         " that imagePullSecret"),
    ],
)  # fmt: skip
async def test_an_account_may_name_the_secrets_that_its_pods_mount(
    rest: Rest, spec: dict[str, Any], problem: str
) -> None:
    await account(rest, metadata={"annotations": {ENFORCE: "true"}}, secrets=[{"name": "own"}])
    refused(await pod(rest, **spec), problem)
    own = {"name": "c", "image": "i", "env": [variable("own")]}
    assert (await pod(rest, containers=[own])).code == 201


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": "x"}}]}]},
        {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "x"}}]}}]},
        {"volumes": [{"name": "v", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "x"}}}]},
    ],
)
async def test_mirror_pods_refer_to_no_secret_in_any_way(rest: Rest, spec: dict[str, Any]) -> None:
    made = {
        "metadata": {"name": "p", "annotations": {"kubernetes.io/config.mirror": "m"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "n", **spec},
    }
    reply = await rest.json("POST", f"{CORE}/pods", made)
    refused(reply, "a mirror pod may not reference secrets")
