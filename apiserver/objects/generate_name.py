"""Names for objects that ask for one (k8s.io/apiserver/pkg/storage/names 1.36)."""

from __future__ import annotations

import random

# Without vowels, so that no words appear, and without what looks alike.
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
NAME_LENGTH_MAX = 63
ATTEMPTS_MAX = 8
"""How many names are generated when names are taken (KEP-4420)."""


def generate(prefix: str, rng: random.Random) -> str:
    """`prefix` (cut so that the whole is no longer than a label) and five random characters."""
    suffix = "".join(rng.choices(ALPHABET, k=SUFFIX_LENGTH))
    return prefix[: NAME_LENGTH_MAX - SUFFIX_LENGTH] + suffix
