"""Define the I/O that plugins ask for, as data: a plugin yields steps and is sent their results.

A generator of steps decides and keeps books; `nominee.scheduler.shell.calls.perform` performs its steps. A step
that fails is raised where it was yielded (StatusError, or FailpointError of an armed failpoint), so `try`
and `finally` work as around a call; a binding that is stopped raises there too.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from google.protobuf.message import Message

from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import core

R = TypeVar("R")
ONCE: Final = 1
RETRIED: Final = 10  # attempts while the API server cannot be reached


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall:
    """A call to the API server; `attempts`: how often it is made at most while the server is away (503, 429).

    A call with several attempts must bear being done twice: its answer may have been lost.
    """

    attempts: int = ONCE


@dataclass(frozen=True, slots=True)
class Get(ApiCall):
    """Read an object; the result is the object."""

    kind: Kind[Any]
    name: str
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Create(ApiCall):
    """Create an object; the result is the stored object."""

    obj: Message


@dataclass(frozen=True, slots=True)
class Update(ApiCall):
    """Replace an object; the result is the stored object.

    `shielded`: a binding that is stopped still waits for the answer, so that the outcome is known.
    """

    obj: Message
    subresource: str = ""
    shielded: bool = False


@dataclass(frozen=True, slots=True)
class Patch(ApiCall):
    """Patch an object (strategic merge); the result is the stored object."""

    kind: Kind[Any]
    name: str
    namespace: str
    patch: object
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Delete(ApiCall):
    """Delete an object."""

    kind: Kind[Any]
    name: str
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class BindPod(ApiCall):
    """Create a pod's Binding."""

    namespace: str
    name: str
    node_name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ClearNomination:
    """Take a pending pod's nomination back. It does not count from now on; the write is not waited for.

    Source: kube-scheduler 1.36, the APICacher of plugins (KEP-5229).
    """

    pod: core.Pod


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Failpoint:
    """Pass a failpoint of `nominee.scheduler.shell.calls.failpoints`: the process may die, stall or err there."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Warn:
    """Log a warning."""

    text: str
    labels: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Concurrently:
    """Do several generators of steps beside each other, at most `limit` at a time."""

    works: Sequence[IoSteps[None]]
    limit: int


@dataclass(frozen=True, slots=True)
class Run:
    """Do the work of another plugin: steps or an awaitable; the result is its result."""

    work: object


IoStep = (
    Get
    | Create
    | Update
    | Patch
    | Delete
    | BindPod
    | ClearNomination
    | Sleep
    | Failpoint
    | Warn
    | Concurrently
    | Run
)
IoSteps = Generator[IoStep, Any, R]
