"""Authenticate the client of a request: by certificate, by bearer token, or as the anonymous user.

A certificate's chain was verified when the connection was made. Here its subject is read and, since
connections live long, its expiry is checked again.

Source: kube-apiserver 1.36, authentication/request (x509, bearertoken, anonymous, union) and token/tokenfile.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cachetools import FIFOCache

from nominee.apiserver.access.service_accounts import ISSUER
from nominee.apiserver.objects.user import ALL_AUTHENTICATED, ANONYMOUS, User
from nominee.machinery.api import errors
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import Clock

if TYPE_CHECKING:
    from nominee.apiserver.access.service_accounts import ServiceAccountTokens

_log = logs.get()
_CERTIFICATES_MAX = 1000
_TOKEN_COLUMNS_MIN, _GROUPS_COLUMN = 3, 3
_LOOK_SECONDS = 0.2
_CREDENTIAL = "authentication.kubernetes.io/credential-id"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of a request: the client's certificate (DER) and the Authorization header."""

    certificate: bytes = b""
    authorization: str = ""

    @property
    def bearer(self) -> str:
        """The bearer token, or ""."""
        kind, _, rest = self.authorization.strip().partition(" ")
        return rest.strip().partition(" ")[0] if kind.lower() == "bearer" else ""


class TokenFileError(ValueError):
    """A token file that cannot be parsed; the text names the line."""


def read_token_file(path: Path) -> dict[str, User]:
    """Read users by token from a file with lines `token,user,uid,"group1,group2"`.

    Raises: TokenFileError for a line with too few columns, OSError.
    """
    users = {}
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.reader(file, skipinitialspace=True), 1):
            if not row or row[0].startswith("#"):
                continue
            if len(row) < _TOKEN_COLUMNS_MIN:
                raise TokenFileError(
                    f"token file '{path}' must have at least 3 columns (token, user name, user uid), "
                    f"line {number} has {len(row)}"
                )
            groups = row[_GROUPS_COLUMN] if len(row) > _GROUPS_COLUMN else ""
            if row[0]:
                names = tuple(name.strip() for name in groups.split(",") if name.strip())
                users[row[0]] = User(row[1], names, row[2])
    return users


class TokenFile:
    """The users of a token file, read again when it has changed.

    Upstream reads it once. Here a kubelet process may restart with other nodes, and the file names the nodes
    of each credential.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._stamp = path.stat().st_mtime_ns
        self._look_at = clock.monotonic() + _LOOK_SECONDS
        self.users = read_token_file(path)

    def changed(self) -> bool:
        """Read the file again if it has changed, and return whether it has.

        The file is checked at most every _LOOK_SECONDS. When it cannot be read, the users stay as they are.
        """
        now = self._clock.monotonic()
        if now < self._look_at:
            return False
        self._look_at = now + _LOOK_SECONDS
        try:
            stamp = self._path.stat().st_mtime_ns
            if stamp == self._stamp:
                return False
            self._stamp = stamp
            self.users = read_token_file(self._path)
        except (OSError, TokenFileError) as error:
            _log.warning("the token file cannot be read; its last contents stay in force", error=str(error))
            return False
        return True


class Certificates:
    """Users by client certificate: the common name is the user, each organization a group."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._users: FIFOCache[bytes, tuple[User, float]] = FIFOCache(_CERTIFICATES_MAX)

    def user_of(self, certificate: bytes) -> User:
        """Return the user of a verified certificate.

        Raises: StatusError 401 when it has expired or its subject has no common name.
        """
        try:
            user, until = self._users[certificate]
        except KeyError:
            user, until = self._users[certificate] = _read(certificate)
        if self._clock.now() > until or not user.name:
            raise errors.unauthorized("Unauthorized")
        return user


def _read(certificate: bytes) -> tuple[User, float]:
    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.x509.oid import NameOID

    read = x509.load_der_x509_certificate(certificate)
    names = read.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    groups = read.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    user = User(
        str(names[0].value) if names else "",
        tuple(str(group.value) for group in groups),
        extra=((_CREDENTIAL, (f"X509SHA256={read.fingerprint(SHA256()).hex()}",)),),
    )
    return user, read.not_valid_after_utc.timestamp()


class Authenticator:
    """All authenticators together; every authenticated user gets the group system:authenticated."""

    def __init__(
        self,
        clock: Clock,
        *,
        tokens: Mapping[str, User] | TokenFile | None = None,
        accounts: ServiceAccountTokens | None = None,
        anonymous: bool = True,
    ) -> None:
        self._certificates = Certificates(clock)
        self._file = tokens if isinstance(tokens, TokenFile) else None
        self._take(tokens.users if isinstance(tokens, TokenFile) else tokens or {})
        self._accounts = accounts
        self._anonymous = anonymous

    def _take(self, tokens: Mapping[str, User]) -> None:
        self._tokens = {token: _known(user) for token, user in tokens.items()}
        # Components send the same header with each call.
        self._headers = {f"Bearer {token}": user for token, user in self._tokens.items()}

    def user_of(self, credentials: Credentials) -> User:
        """Return the user that the credentials authenticate.

        Raises: StatusError 401 for an unknown token, and for no credentials where anonymous is off.
        """
        if self._file is not None and self._file.changed():
            self._take(self._file.users)
        known = self._headers.get(credentials.authorization)
        if known is not None and not credentials.certificate:
            return known
        if credentials.certificate:
            return _known(self._certificates.user_of(credentials.certificate))
        token = credentials.bearer
        if token:
            user = self.of_token(token)
            if user is None:
                raise errors.unauthorized("Unauthorized")
            return user
        if not self._anonymous:
            raise errors.unauthorized("Unauthorized")
        return ANONYMOUS

    def of_token(self, token: str, audiences: Sequence[str] = ()) -> User | None:
        """Return the user of a bearer token for one of the audiences, or None when it is invalid."""
        user = self._tokens.get(token) if not audiences or ISSUER in audiences else None
        if user is None and self._accounts is not None:
            found = self._accounts.user_of(token, audiences)
            user = _known(found) if found is not None else None
        return user


def _known(user: User) -> User:
    if ALL_AUTHENTICATED in user.groups:
        return user
    return replace(user, groups=(*user.groups, ALL_AUTHENTICATED))
