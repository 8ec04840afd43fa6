"""Authentication by tokens, by client certificates and as the anonymous user; impersonation."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from nominee.apiserver.access.access import Access
from nominee.apiserver.access.authentication import (
    Authenticator,
    Credentials,
    TokenFile,
    TokenFileError,
    read_token_file,
)
from nominee.apiserver.access.authorizer import ALLOWED, NO_OPINION, Decision, RulesFor
from nominee.apiserver.access.service_accounts import ISSUER, Claims, ServiceAccountTokens
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.user import ANONYMOUS, User
from nominee.apiserver.registry import token_requests
from nominee.localcluster.credentials.authority import Identity
from nominee.localcluster.credentials.pki import Pki
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.wire import codec
from tests.apiserver.access.fakes import Objects

NOW = 1_800_000_000.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOW)


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    made = Pki(tmp_path / "pki")
    made.ensure({}, {}, now=datetime.fromtimestamp(NOW, UTC))
    return made


def der(pem: bytes) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    return x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)


def test_a_token_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text('t1,jane,u1,"dev, ops"\n# none\n\nt2,joe,u2\n,unnamed,u3\n')
    assert read_token_file(path) == {"t1": User("jane", ("dev", "ops"), "u1"), "t2": User("joe", (), "u2")}
    path.write_text("t1,jane\n")
    with pytest.raises(TokenFileError, match="at least 3 columns"):
        read_token_file(path)


async def test_a_token_file_that_changes(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "tokens.csv"

    def write(text: str, nanoseconds: int) -> None:
        path.write_text(text)
        os.utime(path, ns=(nanoseconds, nanoseconds))

    def groups() -> tuple[str, ...]:
        return authenticator.user_of(Credentials(authorization="Bearer t")).groups

    write("t,jane,1,dev\n", 1)
    authenticator = Authenticator(clock, tokens=TokenFile(path, clock))
    assert groups() == ("dev", "system:authenticated")
    write("t,jane,1,ops\n", 2)
    await clock.advance(1)
    assert groups() == ("ops", "system:authenticated")
    write("t\n", 3)
    await clock.advance(1)
    assert groups() == ("ops", "system:authenticated")


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("Bearer t1", "jane"),
        ("bearer  t1", "jane"),
        ("", "system:anonymous"),
        ("Basic abc", "system:anonymous"),
        ("Bearer ", "system:anonymous"),
        ("Bearer wrong", None),
    ],
)
def test_bearer_tokens(clock: FakeClock, header: str, name: str | None) -> None:
    authenticator = Authenticator(clock, tokens={"t1": User("jane", ("dev",))})
    credentials = Credentials(authorization=header)
    if name is None:
        with pytest.raises(StatusError, match="Unauthorized") as refused:
            authenticator.user_of(credentials)
        assert (refused.value.code, refused.value.message) == (401, "Unauthorized")
        return
    user = authenticator.user_of(credentials)
    assert user.name == name
    if name == "jane":
        assert user.groups == ("dev", "system:authenticated")


def test_requests_without_credentials_may_be_refused(clock: FakeClock) -> None:
    with pytest.raises(StatusError, match="Unauthorized"):
        Authenticator(clock, anonymous=False).user_of(Credentials())
    assert Authenticator(clock).user_of(Credentials()) == ANONYMOUS


async def test_certificates(clock: FakeClock, pki: Pki) -> None:
    now = datetime.fromtimestamp(NOW, UTC)
    made, _ = pki.client(Identity("system:node:n1", ("system:nodes", "more")), now=now)
    authenticator = Authenticator(clock)
    user = authenticator.user_of(Credentials(der(made)))
    assert (user.name, user.groups) == ("system:node:n1", ("system:nodes", "more", "system:authenticated"))
    assert user.extra[0][0] == "authentication.kubernetes.io/credential-id"
    await clock.advance(timedelta(days=366).total_seconds())
    with pytest.raises(StatusError, match="Unauthorized"):
        authenticator.user_of(Credentials(der(made)))


class Only:
    """Allows just these."""

    def __init__(self, *allowed: tuple[str, str]) -> None:
        self._allowed = allowed

    def decide(self, user: User, attributes: Attributes) -> Decision:
        assert attributes.verb == "impersonate"
        resource = attributes.resource
        if attributes.subresource:
            resource += f"/{attributes.subresource}"
        name = f"{attributes.namespace}/{attributes.name}" if attributes.namespace else attributes.name
        return ALLOWED if (resource, name) in self._allowed else NO_OPINION

    def rules_for(self, user: User, namespace: str) -> RulesFor:
        return RulesFor()


def test_impersonation(clock: FakeClock) -> None:
    access = Access(
        Authenticator(clock, tokens={"t": User("joe")}),
        Only(
            ("users", "jane"),
            ("groups", "dev"),
            ("userextras/scopes", "x"),
            ("serviceaccounts", "ns/robot"),
            ("users", "system:anonymous"),
        ),
    )
    credentials = Credentials(authorization="Bearer t")

    def acting(*headers: tuple[str, str]) -> User:
        return access.impersonate(access.authenticate(credentials), headers)

    assert acting().name == "joe"
    assert acting(("impersonate-user", "jane")) == User("jane", ("system:authenticated",))
    jane = acting(
        ("impersonate-user", "jane"), ("impersonate-group", "dev"), ("impersonate-extra-scopes", "x")
    )
    assert jane == User("jane", ("dev", "system:authenticated"), "", (("scopes", ("x",)),))
    robot = acting(("impersonate-user", "system:serviceaccount:ns:robot"))
    assert robot.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
    assert acting(("impersonate-user", "system:anonymous")).groups == ("system:unauthenticated",)
    for headers, message in (
        (
            [("impersonate-user", "root")],
            'users "root" is forbidden: User "joe" cannot impersonate resource "users" in API group "" at the'
            " cluster scope",
        ),
        (
            [("impersonate-user", "jane"), ("impersonate-group", "system:masters")],
            'groups "system:masters" is forbidden: User "joe" cannot impersonate resource "groups"'
            ' in API group "" at the cluster scope',
        ),
    ):
        with pytest.raises(StatusError) as refused:
            acting(*headers)
        assert (refused.value.code, refused.value.message) == (403, message)
    with pytest.raises(StatusError) as refused:
        acting(("impersonate-group", "dev"), ("impersonate-extra-a", "b"))
    assert (refused.value.code, refused.value.message) == (
        400,
        'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"dev"},'
        ' Extra:map[string][]string{"a":[]string{"b"}}} without impersonating a user name',
    )
    with pytest.raises(
        StatusError, match=r'UID:"7", Groups:\[\]string\(nil\), Extra:map\[string\]\[\]string\(nil\)'
    ):
        acting(("impersonate-uid", "7"))


def account(objects: Objects, uid: str = "u") -> None:
    made = core.ServiceAccount()
    made.metadata.namespace, made.metadata.name, made.metadata.uid = "ns", "robot", uid
    objects.put(kinds.SERVICE_ACCOUNT, made)


async def test_tokens_of_service_accounts(clock: FakeClock, pki: Pki) -> None:
    objects = Objects()
    account(objects)
    pod = core.Pod()
    pod.metadata.namespace, pod.metadata.name, pod.metadata.uid = "ns", "p", "pu"
    objects.put(kinds.POD, pod)
    tokens = ServiceAccountTokens(pki.accounts_key.read_bytes(), objects, clock)
    claims = Claims("ns", "robot", "u", (ISSUER,), NOW, NOW + 3600, "id", (("pod", "p", "pu"),))
    token = tokens.issue(claims)
    authenticator = Authenticator(clock, accounts=tokens)
    user = authenticator.user_of(Credentials(authorization=f"Bearer {token}"))
    assert user.name == "system:serviceaccount:ns:robot"
    assert "system:serviceaccounts:ns" in user.groups
    assert dict(user.extra)["authentication.kubernetes.io/pod-name"] == ("p",)
    assert authenticator.of_token(token, ["other"]) is None
    head, payload, signature = token.split(".")
    for wrong in (
        f"{head}.{payload}x.{signature}",
        f"{head}.{payload}",
        "a.b.c",
        f"{head}..{signature}",
        token[:-2],
    ):
        assert authenticator.of_token(wrong) is None, wrong
    await clock.advance(3601)
    assert authenticator.of_token(token) is None
    fresh = tokens.issue(Claims("ns", "robot", "u", (ISSUER,), NOW, NOW + 9000, "id"))
    assert authenticator.of_token(fresh) is not None
    account(objects, "another")
    assert authenticator.of_token(fresh) is None


async def test_a_token_bound_to_a_node_ends_with_it(clock: FakeClock, pki: Pki) -> None:
    objects = Objects()
    account(objects)
    node, pod = core.Node(), core.Pod()
    node.metadata.name, node.metadata.uid = "n", "nu"
    pod.metadata.namespace, pod.metadata.name, pod.metadata.uid = "ns", "p", "pu"
    objects.put(kinds.NODE, node)
    objects.put(kinds.POD, pod)
    tokens = ServiceAccountTokens(pki.accounts_key.read_bytes(), objects, clock)

    def token(*bound: tuple[str, str, str]) -> str:
        return tokens.issue(Claims("ns", "robot", "u", (ISSUER,), NOW, NOW + 3600, "id", bound))

    own, of_pod = token(("node", "n", "nu")), token(("pod", "p", "pu"), ("node", "n", "nu"))
    assert [tokens.user_of(each, [ISSUER]) is not None for each in (own, of_pod)] == [True, True]
    node.metadata.uid = "another"
    objects.put(kinds.NODE, node)
    assert [tokens.user_of(each, [ISSUER]) is not None for each in (own, of_pod)] == [False, True]


async def test_a_token_bound_to_a_pod(clock: FakeClock, pki: Pki) -> None:
    objects = Objects()
    account(objects)
    pod = core.Pod()
    pod.metadata.namespace, pod.metadata.name, pod.metadata.uid = "ns", "p", "pu"
    pod.spec.serviceAccountName = "robot"
    objects.put(kinds.POD, pod)
    tokens = ServiceAccountTokens(pki.accounts_key.read_bytes(), objects, clock)

    async def issued(uid: str) -> str:
        asked = codec.from_json(
            token_requests.TOKEN_REQUEST.message,
            {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid}}},
        )
        token_requests.prepare(asked, "ns", "robot")
        made = await token_requests.issue(tokens, cast("Any", objects), asked, NOW, "id")
        return str(made.message.status.token)

    for uid in ("", "pu"):
        user = tokens.user_of(await issued(uid), [ISSUER])
        assert user is not None
        assert dict(user.extra)["authentication.kubernetes.io/pod-uid"] == ("pu",)
    with pytest.raises(StatusError) as caught:
        await issued("another")
    assert errors.is_conflict(caught.value)
    assert "the UID in the bound object reference (another) does not match" in caught.value.message
