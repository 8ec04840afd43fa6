"""The continue token of a list: the revision of the first page, and the key of the next object.

The form is kube-apiserver's (base64url of JSON, `meta.k8s.io/v1`), since a client may continue a list at
another server. Error texts are as in tests/golden (api_list.jsonl, family page).
"""

from __future__ import annotations

import base64
import json
import posixpath
import re
from dataclasses import dataclass

_VERSION = "meta.k8s.io/v1"
_ALPHABET = re.compile(rb"[A-Za-z0-9_-]*")
# The revision of a token that continues at the newest revision, after the first page's was compacted.
INCONSISTENT = -1


class InvalidToken(ValueError):
    """A text that is not a continue token of this server."""


@dataclass(frozen=True, slots=True)
class ContinueToken:
    """Continues at `revision` (etcd's, or `INCONSISTENT`) with the key `start`, below the list's prefix."""

    revision: int
    start: str

    def encode(self) -> str:
        document = {"v": _VERSION, "rv": self.revision, "start": self.start}
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
        return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def decode(text: str) -> ContinueToken:
    """Decode a continue token.

    Raises: InvalidToken.
    """
    try:
        document = json.loads(_base64(text.encode()).decode("utf-8", "replace"))
    except json.JSONDecodeError as error:
        bad = error.doc[error.pos : error.pos + 1]
        problem = (
            f"invalid character '{bad}' looking for beginning of value"
            if bad
            else "unexpected end of JSON input"
        )
        raise InvalidToken(f"continue key is not valid: {problem}") from None
    except InvalidToken:
        raise
    except (ValueError, RecursionError):
        # Too deep, or a number of thousands of digits.
        raise InvalidToken("continue key is not valid: exceeded max depth") from None
    if not isinstance(document, dict):
        raise InvalidToken("continue key is not valid: not an object")
    version, revision, start = (document.get(name) for name in ("v", "rv", "start"))
    if version != _VERSION:
        raise InvalidToken(
            f"continue key is not valid: server does not recognize this encoded version {version or ''}"
        )
    if not isinstance(revision, int) or revision == 0:
        raise InvalidToken(
            f"continue key is not valid: incorrect encoded start resourceVersion (version {_VERSION})"
        )
    if not isinstance(start, str) or not start:
        raise InvalidToken(f"continue key is not valid: encoded start key empty (version {_VERSION})")
    # A token must not lead out of the list's prefix.
    absolute = start if start.startswith("/") else f"/{start}"
    if posixpath.normpath(absolute) != absolute:
        raise InvalidToken(f"continue key is not valid: {start}")
    return ContinueToken(revision, absolute[1:])


def _base64(data: bytes) -> bytes:
    valid = _ALPHABET.match(data)
    assert valid is not None
    if valid.end() < len(data) or len(data) % 4 == 1:
        raise InvalidToken(f"continue key is not valid: illegal base64 data at input byte {valid.end()}")
    return base64.urlsafe_b64decode(data + b"=" * (-len(data) % 4))
