"""The keys of objects in etcd: /registry/pods/default/web."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from nominee.machinery.api.kinds import KINDS, STORED_AS, AnyKind

_ROOT: Final = "/registry/"
_BY_PREFIX: Final[dict[str, AnyKind]] = {kind.key_prefix(): kind for kind in KINDS if kind not in STORED_AS}


@lru_cache(maxsize=65_536)
def parse_key(key: str) -> tuple[AnyKind | None, str, str]:
    """Return kind, namespace and name of an etcd key; (None, "", key) for any other key."""
    parts = key.removeprefix(_ROOT).split("/")
    for size in (2, 1):
        kind = _BY_PREFIX.get(f"{_ROOT}{'/'.join(parts[:size])}/")
        rest = parts[size:]
        if kind is not None and len(rest) == (2 if kind.namespaced else 1):
            return kind, rest[0] if kind.namespaced else "", rest[-1]
    return None, "", key


def kind_below(key: str) -> AnyKind | None:
    """Return the kind of a key, or of a prefix of keys (`/registry/pods/default/`); None if it has none."""
    parts = key.removeprefix(_ROOT).split("/")
    found = (_BY_PREFIX.get(f"{_ROOT}{'/'.join(parts[:size])}/") for size in (2, 1))
    return next((kind for kind in found if kind is not None), None)
