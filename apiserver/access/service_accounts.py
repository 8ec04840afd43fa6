"""Tokens of service accounts: signed JSON web tokens (RFC 7519).

The subresource serviceaccounts/token issues one for an account, bound to a pod, a secret or a node on
request. A token is valid until it expires, while the account and the object that it is bound to have the same
uid.

Source: kube-apiserver 1.36, pkg/serviceaccount (claims).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from nominee.apiserver.objects.user import User
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.runtime.clock import Clock

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

ISSUER = "https://kubernetes.default.svc.cluster.local"
_COORDINATE_BYTES = 32
_DOTS = 2
_BOUND: dict[str, AnyKind] = {"pod": kinds.POD, "secret": kinds.SECRET, "node": kinds.NODE}
_LEEWAY_SECONDS = 1.0


class Objects(Protocol):
    """The watch cache."""

    def get(self, kind: AnyKind, namespace: str, name: str) -> Any: ...


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a token. Times are seconds since the epoch; `bound` has (pod|secret|node, name, uid)."""

    namespace: str
    account: str
    uid: str
    audiences: Sequence[str]
    issued: float
    expires: float
    token_id: str
    bound: Sequence[tuple[str, str, str]] = ()

    def document(self) -> dict[str, Any]:
        """Return the claims as JSON, in alphabetical order."""
        private: dict[str, Any] = {"namespace": self.namespace}
        for kind, name, uid in self.bound:
            private[kind] = {"name": name, "uid": uid}
        private["serviceaccount"] = {"name": self.account, "uid": self.uid}
        return {
            "aud": list(self.audiences),
            "exp": int(self.expires),
            "iat": int(self.issued),
            "iss": ISSUER,
            "jti": self.token_id,
            "kubernetes.io": private,
            "nbf": int(self.issued),
            "sub": f"system:serviceaccount:{self.namespace}:{self.account}",
        }


def parse_key(pem: bytes) -> EllipticCurvePrivateKey:
    """Return the private key that signs service accounts' tokens.

    Raises:
        ValueError: it is not an ECDSA key in PEM.
    """
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem, None)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the key for service accounts' tokens cannot be read: {error}") from None
    if not isinstance(key, EllipticCurvePrivateKey):
        raise ValueError("the key for service accounts' tokens is no ECDSA key")
    return key


class ServiceAccountTokens:
    """Issues and verifies tokens with one key (ECDSA P-256, PEM).

    The key is parsed on first use: the import of the library takes 70 ms, which would delay the start.
    """

    def __init__(self, pem: bytes, objects: Objects, clock: Clock) -> None:
        self._pem = pem
        self._objects = objects
        self._clock = clock

    @cached_property
    def _key(self) -> EllipticCurvePrivateKey:
        try:
            return parse_key(self._pem)
        except ValueError as error:
            raise errors.internal(str(error)) from None

    @cached_property
    def _key_id(self) -> str:
        """The key id that kube-apiserver computes: a hash of the public key (PKIX, DER)."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        public = self._key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return _encode(hashlib.sha256(public).digest())

    def json_web_key(self) -> dict[str, str]:
        """Return the public key as a JSON Web Key (RFC 7517), with the fields in go-jose's order."""
        numbers = self._key.public_key().public_numbers()
        x, y = (_encode(each.to_bytes(_COORDINATE_BYTES, "big")) for each in (numbers.x, numbers.y))
        point = {"crv": "P-256", "alg": "ES256", "x": x, "y": y}
        return {"use": "sig", "kty": "EC", "kid": self._key_id, **point}

    def issue(self, claims: Claims) -> str:
        """Return a signed token."""
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
        from cryptography.hazmat.primitives.hashes import SHA256

        header = {"alg": "ES256", "kid": self._key_id}
        signed = f"{_encode(_json(header))}.{_encode(_json(claims.document()))}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ECDSA(SHA256())))
        signature = r.to_bytes(_COORDINATE_BYTES, "big") + s.to_bytes(_COORDINATE_BYTES, "big")
        return f"{signed}.{_encode(signature)}"

    def user_of(self, token: str, audiences: Sequence[str] = ()) -> User | None:
        """Return the account of a token as a user, or None.

        None when the token has another issuer or key, has expired, or its account or bound object no longer
        exists.
        """
        document = self._verified(token)
        if document is None or not set(document.get("aud", ())) & set(audiences or (ISSUER,)):
            return None
        now = self._clock.now()
        if now > document["exp"] or now + _LEEWAY_SECONDS < document["nbf"]:
            return None
        private = document["kubernetes.io"]
        namespace, account = private["namespace"], private["serviceaccount"]
        if not self._same(kinds.SERVICE_ACCOUNT, namespace, account):
            return None
        extra = [("authentication.kubernetes.io/credential-id", (f"JTI={document['jti']}",))]
        for name, kind in _BOUND.items():
            bound = private.get(name)
            if bound is None:
                continue
            # A pod's token only names its node; a node that the token itself is bound to must exist.
            if (name != "node" or "pod" not in private) and not self._same(
                kind, namespace if kind.namespaced else "", bound
            ):
                return None
            if name != "secret":
                extra.append((f"authentication.kubernetes.io/{name}-name", (bound["name"],)))
                extra.append((f"authentication.kubernetes.io/{name}-uid", (bound["uid"],)))
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        return User(document["sub"], groups, account["uid"], tuple(sorted(extra)))

    def _same(self, kind: AnyKind, namespace: str, wanted: dict[str, str]) -> bool:
        found = self._objects.get(kind, namespace, wanted["name"])
        return found is not None and found.message.metadata.uid == wanted["uid"]

    def _verified(self, token: str) -> dict[str, Any] | None:
        if token.count(".") != _DOTS:
            return None
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
        from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
        from cryptography.hazmat.primitives.hashes import SHA256

        signed, _, encoded = token.rpartition(".")
        try:
            header, payload = (json.loads(_decode(part)) for part in signed.split("."))
            signature = _decode(encoded)
            if header["alg"] != "ES256" or len(signature) != 2 * _COORDINATE_BYTES:
                return None
            r = int.from_bytes(signature[:_COORDINATE_BYTES], "big")
            s = int.from_bytes(signature[_COORDINATE_BYTES:], "big")
            self._key.public_key().verify(encode_dss_signature(r, s), signed.encode(), ECDSA(SHA256()))
        except (ValueError, KeyError, TypeError, RecursionError, InvalidSignature):
            return None
        return payload if payload.get("iss") == ISSUER else None


def _json(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
