"""The addresses of etcd's members: those of one etcd, or of the members of a cluster, kept for good.

A member's peer address is stored in the others' data, so the addresses of a cluster never change: the member
that starts first chooses all of them and writes D/etcd/members.json.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

_FILE = "members.json"
_DATA_OF_ONE = "member-data"


class MembersError(RuntimeError):
    """The data in the directory are those of another number of members; the message has the remedy."""


@dataclass(frozen=True, slots=True)
class EtcdAddresses:
    """Addresses of an etcd: `host:port` for clients and for peers."""

    client: str
    peer: str


def names(count: int) -> list[str]:
    """Return the names of the members of a cluster."""
    return [f"etcd-{index}" for index in range(count)]


def agree_on_addresses(
    folder: Path, count: int, free_addresses: Callable[[int], list[str]]
) -> Mapping[str, EtcdAddresses]:
    """Return the addresses of all members by name; the first caller chooses them.

    Raises:
        MembersError: the folder has the data of another number of members.
    """
    folder.mkdir(parents=True, exist_ok=True)
    check(folder, count)
    path = folder / _FILE
    if not path.exists():
        free = free_addresses(2 * count)
        pairs = [EtcdAddresses(*free[at : at + 2]) for at in range(0, 2 * count, 2)]
        chosen = dict(zip(names(count), pairs, strict=True))
        with NamedTemporaryFile("w", encoding="utf-8", dir=folder, prefix=f".{path.name}.") as temporary:
            json.dump({name: asdict(at) for name, at in chosen.items()}, temporary)
            temporary.flush()
            # Of several members that start together, one file stays.
            with suppress(FileExistsError):
                os.link(temporary.name, path)
    return _read(path)


def check(folder: Path, count: int) -> None:
    """Check that the folder has no data, or those of this number of members (1: of a single etcd).

    Raises:
        MembersError: it has others.
    """
    found = members_in(folder) or count
    if found != count:
        raise MembersError(
            f"the data in {folder} are of {found} etcd member{'s' if found > 1 else ''}, not of {count}: use "
            f"--replicas etcd={found}, another --dir, or remove {folder} to start again"
        )


def members_in(folder: Path) -> int:
    """Return the number of members whose data the folder has; 0 without data.

    Raises:
        MembersError: the file of the members cannot be read.
    """
    return len(_read(folder / _FILE)) or int((folder / _DATA_OF_ONE).is_dir())


def _read(path: Path) -> dict[str, EtcdAddresses]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return {name: EtcdAddresses(**at) for name, at in document.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise MembersError(f"{path} cannot be read: {error}; remove {path.parent} to start again") from None
