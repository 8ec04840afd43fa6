"""`Cluster` for an event loop: the same methods, awaitable, each of which runs in a worker thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Concatenate, Generic, ParamSpec, Self, TypeVar, Unpack

import anyio
import anyio.to_thread

from nominee.testing.cluster import Cluster, ClusterOptions

P = ParamSpec("P")
T = TypeVar("T")


class _InThread(Generic[P, T]):
    """A method of Cluster as one of AsyncCluster, with the same arguments."""

    def __init__(self, method: Callable[Concatenate[Cluster, P], T], *, abandons: bool = False) -> None:
        self._method, self._abandons = method, abandons
        self.__doc__ = method.__doc__

    def __get__(
        self, instance: AsyncCluster, owner: type[AsyncCluster] | None = None
    ) -> Callable[P, Awaitable[T]]:
        def call(*args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
            method = partial(self._method, instance.cluster, *args, **kwargs)
            return anyio.to_thread.run_sync(method, abandon_on_cancel=self._abandons)

        return call


class AsyncCluster:
    """A cluster: `async with AsyncCluster(nodes=3) as cluster: ...`; see Cluster for arguments and errors.

    It runs with asyncio and trio. `cluster` is the blocking one. A client library's own asynchronous client
    is made of `kubeconfig`.
    """

    def __init__(self, **options: Unpack[ClusterOptions]) -> None:
        self.cluster = Cluster(**options)
        # The kernel ends a process with the thread that started it; an idle worker thread ends.
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="nominee-cluster")

    async def __aenter__(self) -> Self:
        try:
            starting = self._starter.submit(self.cluster.__enter__)
            await anyio.to_thread.run_sync(starting.result)
        except BaseException:
            # Cancelled: the cluster may have started, or will.
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        ending = self._starter.submit(self.cluster.__exit__, kind, error, traceback)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(ending.result)
        self._starter.shutdown(wait=False)

    @property
    def directory(self) -> Path:
        """Return the state directory (docs/configuration.md)."""
        return self.cluster.directory

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig."""
        return self.cluster.kubeconfig

    @property
    def namespace(self) -> str:
        """Return the namespace of objects that are named without one."""
        return self.cluster.namespace

    apply = _InThread(Cluster.apply)
    create = _InThread(Cluster.create)
    get = _InThread(Cluster.get)
    find = _InThread(Cluster.find)
    list = _InThread(Cluster.list)
    delete = _InThread(Cluster.delete)
    patch = _InThread(Cluster.patch)
    wait = _InThread(Cluster.wait, abandons=True)
    start = _InThread(Cluster.start)
    stop = _InThread(Cluster.stop)
    restart = _InThread(Cluster.restart)
    pause = _InThread(Cluster.pause)
    resume = _InThread(Cluster.resume)
    failpoint = _InThread(Cluster.failpoint)
    fault = _InThread(Cluster.fault)
    now = _InThread(Cluster.now)
    logs = _InThread(Cluster.logs)
    history = _InThread(Cluster.history)
    verify = _InThread(Cluster.verify)
