"""gzip of long responses, for clients that accept it.

Source: kube-apiserver 1.36, endpoints/handlers/responsewriters (APIResponseCompression).
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

THRESHOLD_BYTES = 128 * 1024
"""Compressing a shorter body costs more time than it saves."""
_LEVEL = 1
_GZIP_WINDOW = zlib.MAX_WBITS | 16


def accepted(accept_encoding: str) -> bool:
    """Report whether a client accepts gzip; q values are ignored, as upstream does."""
    return any(part.partition(";")[0].strip() == "gzip" for part in accept_encoding.split(","))


async def of_pieces(pieces: AsyncIterator[bytes]) -> tuple[AsyncIterator[bytes], bool]:
    """Return the pieces, compressed if they are long, and whether they are."""
    begin: list[bytes] = []
    size = 0
    async for piece in pieces:
        begin.append(piece)
        size += len(piece)
        if size > THRESHOLD_BYTES:
            return _compressed(begin, pieces), True
    return _each(begin), False


def of_body(body: bytes) -> bytes | None:
    """Return the compressed body, or None when it is short."""
    if len(body) <= THRESHOLD_BYTES:
        return None
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    return packer.compress(body) + packer.flush()


async def _each(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def _compressed(begin: list[bytes], more: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    for piece in begin:
        packed = packer.compress(piece)
        if packed:
            yield packed
    begin.clear()
    async for piece in more:
        packed = packer.compress(piece)
        if packed:
            yield packed
    yield packer.flush()
