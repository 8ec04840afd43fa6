"""The links between etcd members that have relays (`nominee.localcluster.etcd.relay`): cut, healed and
listed.

A link is cut in both directions. Commands are lines of JSON on the Unix socket D/run/NAME-relay.sock:
{"cut": [...], "heal": [...]} with names of members; the answer is {"cut": [...]}.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Final

from nominee.localcluster.etcd.leader import leader
from nominee.localcluster.supervisor.commands.socket_path import reachable
from nominee.localcluster.supervisor.directory import is_alive

MESSAGE_BYTES_MAX: Final = 4096
ANSWER_SECONDS_MAX: Final = 5.0
ALL: Final = "*"
CUT: Final = "cut"
OFF: Final = "off"
EVERY: Final = "etcd"
LEADER: Final = "etcd-leader"
_RELAY: Final = "-relay.sock"
_LOOKS_MAX: Final = 5


class LinkError(Exception):
    """A link cannot be cut or healed; the message has the reason and the remedy."""


def socket_path(directory: Path, name: str) -> Path:
    """Return the path of the socket of a member's relay."""
    return directory / "run" / f"{name}{_RELAY}"


def running(directory: Path) -> list[str]:
    """Return the members that have relays, also those that do not run at the moment."""
    return sorted(path.name.removesuffix(_RELAY) for path in (directory / "run").glob(f"etcd-*{_RELAY}"))


def pids(directory: Path) -> Mapping[str, int]:
    """Return the processes of the members that run, from their locks."""
    found = {}
    for path in (directory / "run").glob("etcd-*.lock"):
        text = path.read_text(encoding="utf-8", errors="replace").strip()
        if text.isdigit() and is_alive(int(text)):
            found[path.stem] = int(text)
    return found


def refused_members(directory: Path, name: str) -> frozenset[str]:
    """Return the members from which a member's relay accepts no connection."""
    return _ask(directory, name) or frozenset()


def _ask(directory: Path, name: str, **command: list[str]) -> frozenset[str] | None:
    """Send a command to a member's relay; return the members that it refuses, None if it does not run."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_SECONDS_MAX)
        try:
            with reachable(socket_path(directory, name)) as short:
                connection.connect(short)
            connection.sendall(json.dumps(command).encode() + b"\n")
            answer = connection.recv(MESSAGE_BYTES_MAX)
        except OSError:
            return None
    return frozenset(json.loads(answer)["cut"]) if answer else None


def links(directory: Path, member: str) -> list[tuple[str, str]]:
    """Return the links that are cut, of one member or of all ("etcd"). Raises: LinkError."""
    names = _chosen(directory, _known(directory), member, CUT)
    return [(name, other) for name in names for other in sorted(refused_members(directory, name))]


def states(directory: Path) -> dict[frozenset[str], bool]:
    """Return whether each link is cut, by its two members; without links of which no relay runs.

    Members that answer are asked again, at most 5 times, until they answer the same twice: `put` may change
    one after the other meanwhile.
    """
    members = running(directory)
    answers = {name: _ask(directory, name) for name in members}
    for _ in range(_LOOKS_MAX):
        before = answers
        answers = {name: None if cut is None else _ask(directory, name) for name, cut in before.items()}
        if answers == before:
            break
    return {
        frozenset((one, other)): other in (answers[one] or ()) or one in (answers[other] or ())
        for one, other in combinations(members, 2)
        if answers[one] is not None or answers[other] is not None
    }


def put(directory: Path, member: str, to: str, action: str) -> None:
    """Cut or heal ("off") the links of a member to another one, or to all ("*").

    "etcd" is every member, "etcd-leader" the one that leads now; with "off" it is every member, too.

    Raises:
        LinkError: there is no such link, or the action is another one.
    """
    known = _known(directory)
    if action not in (CUT, OFF):
        raise LinkError(f"{action!r} is not possible for links between etcd members; use {CUT} or {OFF}")
    for name in _chosen(directory, known, member, action):
        others = [each for each in known if each != name]
        if to != ALL and to not in others:
            raise LinkError(f"{name} has no link to {to}; it has links to {', '.join(others)}")
        verb, ends = CUT if action == CUT else "heal", others if to == ALL else [to]
        answers = [_ask(directory, name, **{verb: ends})]
        answers += [_ask(directory, other, **{verb: [name]}) for other in ends]
        if all(answer is None for answer in answers):
            raise LinkError(f"neither {name} nor {' nor '.join(ends)} runs with a relay")


def _known(directory: Path) -> list[str]:
    """Return the members that have relays. Raises: LinkError."""
    known = running(directory)
    if not known:
        raise LinkError(
            "etcd calls no other process: set the fault at the API server, --to etcd. To cut links between "
            "members: nominee up --replicas etcd=3 --arg etcd=--peer-relay"
        )
    return known


def _chosen(directory: Path, known: list[str], member: str, action: str) -> list[str]:
    """Return the members that a name stands for. Raises: LinkError."""
    if member == EVERY or (member == LEADER and action == OFF):
        return known
    if member == LEADER:
        found = leader(directory)
        if not found:
            raise LinkError("no etcd member leads at the moment")
        return [found]
    if member not in known:
        raise LinkError(f"there is no etcd member {member}; there are {', '.join(known)}")
    return [member]
