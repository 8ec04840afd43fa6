"""Shuffle sharding: the queues that a flow may use, a hand of cards dealt by the flow's hash.

Two flows rarely share their whole hand, so that a heavy flow leaves the others a queue of their own.

Source: KEP-1040, "Queue assignment proof of concept".
"""

from __future__ import annotations

import hashlib


def flow_hash(schema: str, distinguisher: str) -> int:
    """Return 64 bits that identify a flow."""
    digest = hashlib.sha256(schema.encode() + b"\0" + distinguisher.encode("utf-8", "surrogatepass"))
    return int.from_bytes(digest.digest()[:8], "little")


def hand(entropy: int, deck: int, size: int) -> tuple[int, ...]:
    """Return `size` different cards of 0 to `deck` - 1; all hands are equally likely."""
    size = min(size, deck)
    cards: list[int] = []
    for dealt in range(size):
        entropy, position = divmod(entropy, deck - dealt)
        # The position counts only cards that are still in the deck.
        for card in sorted(cards):
            position += card <= position
        cards.append(position)
    return tuple(cards)
