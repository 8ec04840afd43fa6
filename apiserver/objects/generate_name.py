"""Names for objects with metadata.generateName.

Source: kube-apiserver 1.36, k8s.io/apiserver/pkg/storage/names.
"""

from __future__ import annotations

import random

# Without vowels, so that no words appear, and without characters that look alike.
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
NAME_LENGTH_MAX = 63
ATTEMPTS_MAX = 8
"""How many names are generated when names are taken (KEP-4420)."""


def generate(prefix: str, rng: random.Random) -> str:
    """Return `prefix`, cut so that the name fits in a label, and five random characters."""
    suffix = "".join(rng.choices(ALPHABET, k=SUFFIX_LENGTH))
    return prefix[: NAME_LENGTH_MAX - SUFFIX_LENGTH] + suffix
