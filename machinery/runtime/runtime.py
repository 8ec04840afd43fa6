"""The runtime of a process. A simulation, with many processes in one interpreter, gives each its own.

A process that has its interpreter for itself has none: it runs on the machine (`host`) and on gRPC
(`machinery.client.transport`), and has the interpreter's failpoints and call faults. The supervisor, which
loads nothing large, imports this module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    import random

    import anyio
    import grpc
    import grpc.aio

    from nominee.machinery.runtime.clock import Clock
    from nominee.machinery.runtime.faults.call_faults import Faults
    from nominee.machinery.runtime.faults.failpoint_registry import Registry

T = TypeVar("T")
Options = Sequence[tuple[str, int | str]]


class Host(Protocol):
    """The calls of components to their machine."""

    def name(self) -> str:
        """Return the host name."""
        ...

    def pid(self) -> int:
        """Return the id of this process."""
        ...

    def is_alive(self, pid: int) -> bool:
        """Return whether the process exists and is no zombie."""
        ...

    def read(self, path: Path) -> bytes:
        """Return the content of a file. Raises: OSError."""
        ...

    def glob(self, folder: Path, pattern: str) -> list[Path]:
        """Return the files of a folder whose names match."""
        ...

    def write(self, path: Path, data: bytes, *, durable: bool = False) -> None:
        """Replace a file: readers see the old or the new content, if `durable` also after a power failure.

        Raises: OSError.
        """
        ...

    def remove(self, path: Path) -> None:
        """Remove a file; a missing one is no error. Raises: OSError."""
        ...

    async def simulated_get(self, address: str, path: str) -> tuple[int, bytes] | None:
        """Return status and body of a GET of a simulated process's serving port; None on a real machine.

        Raises: OSError.
        """
        ...

    async def blocking(self, call: Callable[[], T], limiter: anyio.CapacityLimiter | None = None) -> T:
        """Return the result of a blocking call, made beside the event loop."""
        ...


class Transport(Protocol):
    """A network with gRPC channels and servers."""

    def channel(
        self, target: str, credentials: grpc.ChannelCredentials | None, options: Options
    ) -> grpc.aio.Channel:
        """Return a channel to a target, not encrypted without credentials."""
        ...

    def server(
        self,
        options: Options,
        *,
        interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
        calls_max: int | None = None,
    ) -> grpc.aio.Server:
        """Return a server that is not started yet."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """The machine, the network and the registries of one simulated process."""

    host: Host
    transport: Transport
    process_type: type[object]
    """What the component's command makes: a subclass of machinery.process.component.Process."""
    failpoints: Registry
    faults: Faults
    clock: Clock
    rng: random.Random
    log: Callable[[str], object]
    """Takes one line of the log."""


RUNTIME: ContextVar[Runtime | None] = ContextVar("runtime", default=None)
"""The runtime of the running task; None if its process has the interpreter for itself."""

simulated = False
"""Whether a simulation runs in this interpreter. Failpoints read it: a ContextVar costs more, on each hit."""
