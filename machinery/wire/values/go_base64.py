"""Go's error for a text that is not base64 (encoding/base64, StdEncoding)."""

from __future__ import annotations

_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_QUANTUM = 4


def problem(text: str) -> str:
    """Return Go's error for `text`; "" for valid base64 (line ends are skipped)."""
    at = _stop(text.encode("utf-8", "surrogatepass").decode("latin-1"))
    return "" if at is None else f"illegal base64 data at input byte {at}"


def _skip_lines(text: str, at: int) -> int:
    while at < len(text) and text[at] in "\r\n":
        at += 1
    return at


def _stop(text: str) -> int | None:
    at = 0
    while at < len(text):
        count = 0
        while count < _QUANTUM:
            if at == len(text):
                if count == 0:
                    return None
                return at - count
            character = text[at]
            at += 1
            if character in _ALPHABET:
                count += 1
            elif character in "\r\n":
                continue
            elif character != "=" or count < 2:
                return at - 1
            else:
                if count == 2:
                    at = _skip_lines(text, at)
                    if at == len(text):
                        return len(text)
                    if text[at] != "=":
                        return at - 1
                    at += 1
                at = _skip_lines(text, at)
                return at if at < len(text) else None
    return None
