"""Reviews: who am I, may I, may they, who has this token."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.apiserver.access.access import OPEN, Access
from nominee.apiserver.access.authentication import Authenticator
from nominee.apiserver.access.authorizer import Union
from nominee.apiserver.access.node.authorizer import NodeAuthorizer
from nominee.apiserver.access.node.graph import Graph
from nominee.apiserver.access.rbac import aggregation
from nominee.apiserver.access.rbac.authorizer import RBAC
from nominee.apiserver.access.rbac.bootstrap_policy import load
from nominee.apiserver.access.reviews import answer
from nominee.apiserver.objects.user import ADMIN, User
from nominee.machinery.api.errors import StatusError
from nominee.machinery.runtime.clock import FakeClock
from nominee.pb.k8s.io.api.authentication.v1 import generated_pb2 as authentication
from nominee.pb.k8s.io.api.authorization.v1 import generated_pb2 as authorization
from tests.apiserver.access.fakes import Objects
from tests.apiserver.access.test_rbac import JANE, bind, role, store


@pytest.fixture
def objects() -> Objects:
    made, policy = Objects(), load()
    aggregation.settle(policy.cluster_roles)
    store(made, policy)
    bind(made, "view", "Group:dev", "team")
    return made


@pytest.fixture
def access(objects: Objects) -> Access:
    authenticator = Authenticator(FakeClock(), tokens={"t": User("joe", ("ops",), "7")})
    return Access(authenticator, Union([NodeAuthorizer(Graph(objects)), RBAC.over(objects)]))


def may_i(verb: str, resource: str, namespace: str) -> Any:
    review = authorization.SelfSubjectAccessReview()
    asked = review.spec.resourceAttributes
    asked.verb, asked.resource, asked.namespace, asked.version = verb, resource, namespace, "*"
    return review


def test_may_i(access: Access) -> None:
    granted = answer(access, may_i("list", "pods", "team"), JANE, "").status
    assert granted.allowed
    assert granted.reason == (
        'RBAC: allowed by RoleBinding "Group:dev-view/team" of ClusterRole "view" to Group "dev"'
    )
    for verb, namespace in (("list", "other"), ("delete", "team")):
        refused = answer(access, may_i(verb, "pods", namespace), JANE, "").status
        assert (refused.allowed, refused.reason) == (False, "")
    assert answer(access, may_i("*", "*", ""), ADMIN, "").status.allowed
    path = authorization.SelfSubjectAccessReview()
    path.spec.nonResourceAttributes.verb, path.spec.nonResourceAttributes.path = "get", "/metrics"
    assert not answer(access, path, JANE, "").status.allowed
    assert answer(OPEN, path, JANE, "").status.allowed


def test_may_they(access: Access) -> None:
    review = authorization.SubjectAccessReview()
    review.spec.user = "system:node:n1"
    review.spec.groups.append("system:nodes")
    asked = review.spec.resourceAttributes
    asked.verb, asked.resource, asked.name = "get", "nodes", "n2"
    status = answer(access, review, ADMIN, "").status
    assert not status.allowed
    assert status.reason == "node 'n1' cannot read 'n2', only its own Node object"
    asked.name = "n1"
    assert answer(access, review, ADMIN, "").status.allowed


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            "SelfSubjectAccessReview",
            'SelfSubjectAccessReview.authorization.k8s.io "" is invalid: spec.resourceAttributes:'
            " Required value: exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ),
        (
            "SubjectAccessReview",
            'SubjectAccessReview.authorization.k8s.io "" is invalid: [spec.resourceAttributes:'
            " Required value: exactly one of nonResourceAttributes or resourceAttributes must be specified,"
            " spec.user: Required value: at least one of user or group must be specified]",
        ),
    ],
)
def test_reviews_of_nothing(access: Access, kind: str, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        answer(access, getattr(authorization, kind)(), JANE, "")
    assert (refused.value.code, refused.value.message) == (422, message)


def test_a_local_review_is_about_its_namespace(access: Access) -> None:
    review = authorization.LocalSubjectAccessReview()
    review.spec.groups.append("dev")
    asked = review.spec.resourceAttributes
    asked.verb, asked.resource, asked.namespace = "list", "pods", "team"
    assert answer(access, review, ADMIN, "team").status.allowed
    with pytest.raises(StatusError, match=r"must match metadata\.namespace"):
        answer(access, review, ADMIN, "other")


def test_what_may_i(access: Access, objects: Objects) -> None:
    role(objects, "one", {"verbs": ["get"], "apiGroups": ["x"], "resources": ["w"], "resourceNames": ["a"]})
    bind(objects, "one", "User:jane")
    review = authorization.SelfSubjectRulesReview()
    with pytest.raises(StatusError, match="no namespace"):
        answer(access, review, JANE, "")
    review.spec.namespace = "team"
    status = answer(access, review, JANE, "").status
    assert not status.incomplete
    assert any(list(rule.resourceNames) == ["a"] for rule in status.resourceRules)
    assert any("pods" in rule.resources and "list" in rule.verbs for rule in status.resourceRules)
    assert any("/apis" in rule.nonResourceURLs for rule in status.nonResourceRules)
    node = answer(access, review, User("system:node:n1", ("system:nodes",)), "").status
    assert node.incomplete
    assert node.evaluationError == "node authorizer does not support user rule resolution"


def test_whose_token_is_this(access: Access) -> None:
    review = authentication.TokenReview()
    with pytest.raises(StatusError, match="token is required"):
        answer(access, review, ADMIN, "")
    review.spec.token = "t"
    status = answer(access, review, ADMIN, "").status
    assert status.authenticated
    assert (status.user.username, status.user.uid) == ("joe", "7")
    assert list(status.user.groups) == ["ops", "system:authenticated"]
    review.spec.token = "x"
    assert not answer(access, review, ADMIN, "").status.authenticated


def test_who_am_i(access: Access) -> None:
    user = User("jane", ("dev",), "", (("scopes", ("a", "b")),))
    info = answer(access, authentication.SelfSubjectReview(), user, "").status.userInfo
    assert (info.username, list(info.groups)) == ("jane", ["dev"])
    assert list(info.extra["scopes"].items) == ["a", "b"]
