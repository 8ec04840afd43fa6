"""Impersonation: the Impersonate-* headers. Pure.

Each part of the requested identity needs the verb `impersonate`: the user or service account, each group, the
uid and each extra value.

Source: kube-apiserver 1.36, endpoints/filters/impersonation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from nominee.apiserver.access.authorizer import Authorizer, forbidden
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.user import ALL_AUTHENTICATED, ALL_UNAUTHENTICATED, ANONYMOUS, User
from nominee.machinery.api import errors
from nominee.machinery.api.names import go_quote

PREFIX = "impersonate-"
_USER, _GROUP, _UID, _EXTRA = "impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-"
_ACCOUNT = "system:serviceaccount:"
_AUTHENTICATION = "authentication.k8s.io"
_ACCOUNT_PARTS = 4

Headers = Sequence[tuple[str, str]]
"""Names in lower case and values; a name may repeat."""


def impersonate(user: User, headers: Headers, authorizer: Authorizer) -> User:
    """Return the user that the headers name, if `user` may impersonate it, or `user` without such headers.

    Raises: StatusError 403; 400 for groups, uid or extra without a user.
    """
    name = next((value for key, value in headers if key == _USER), "")
    groups = [value for key, value in headers if key == _GROUP]
    uid = next((value for key, value in headers if key == _UID), "")
    extra: dict[str, list[str]] = {}
    for key, value in headers:
        if key.startswith(_EXTRA):
            extra.setdefault(unquote(key[len(_EXTRA) :]).lower(), []).append(value)
    if not name:
        if groups or uid or extra:
            raise errors.bad_request(
                f"requested {_shown(uid, groups, extra)} without impersonating a user name"
            )
        return user
    account = _account(name)
    questions = [
        _of_account(account) if account else Attributes("impersonate", "users", version="v1", name=name)
    ]
    questions += [Attributes("impersonate", "groups", version="v1", name=group) for group in groups]
    questions += [
        Attributes("impersonate", "userextras", _AUTHENTICATION, "v1", subresource=key, name=value)
        for key, values in extra.items()
        for value in values
    ]
    if uid:
        questions.append(Attributes("impersonate", "uids", _AUTHENTICATION, "v1", name=uid))
    for question in questions:
        decision = authorizer.decide(user, question)
        if not decision.allowed:
            raise forbidden(user, question, decision.reason)
    if account and not groups:
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{account[0]}"]
    own = ALL_UNAUTHENTICATED if name == ANONYMOUS.name else ALL_AUTHENTICATED
    if not {ALL_AUTHENTICATED, ALL_UNAUTHENTICATED}.intersection(groups):
        groups.append(own)
    return User(
        name, tuple(groups), uid, tuple((key, tuple(values)) for key, values in sorted(extra.items()))
    )


def _shown(uid: str, groups: Sequence[str], extra: Mapping[str, Sequence[str]]) -> str:
    """Return the requested user as Go prints it."""

    def texts(found: Sequence[str]) -> str:
        return f"{{{', '.join(map(go_quote, found))}}}" if found else "(nil)"

    rows = ", ".join(f"{go_quote(key)}:[]string{texts(values)}" for key, values in sorted(extra.items()))
    more = f"{{{rows}}}" if extra else "(nil)"
    return (
        f'&user.DefaultInfo{{Name:"", UID:{go_quote(uid)}, Groups:[]string{texts(groups)},'
        f" Extra:map[string][]string{more}}}"
    )


def _account(name: str) -> tuple[str, str] | None:
    """Return namespace and name of a service account's user name."""
    parts = name.split(":")
    if name.startswith(_ACCOUNT) and len(parts) == _ACCOUNT_PARTS and all(parts):
        return parts[2], parts[3]
    return None


def _of_account(account: tuple[str, str]) -> Attributes:
    namespace, name = account
    return Attributes("impersonate", "serviceaccounts", version="v1", namespace=namespace, name=name)
