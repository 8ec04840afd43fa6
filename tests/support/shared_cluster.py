"""The fixture `cluster`: real processes for a test. Its etcd and API server may serve the next test, too."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from nominee.localcluster.credentials.pki import Pki
from nominee.localcluster.plan import AUTHORIZATION_MODE
from nominee.machinery.api import kinds
from nominee.machinery.process.run_files import RunFile
from tests.support.cluster import Cluster
from tests.support.control_plane import NAMES, ControlPlane


@dataclass
class Place:
    """The directory of one test after the other, and the control plane that the last one has left."""

    directory: Path
    control_plane: ControlPlane | None = None

    def discard(self) -> None:
        """End the control plane."""
        found, self.control_plane = self.control_plane, None
        if found is not None:
            found.end()


class SharedCluster(Cluster):
    """A cluster that takes the control plane of the place if its command lines are the same.

    A control plane is left to the next test if the test started both processes at once, and neither stopped,
    killed, nor paused one of them; and if no fault is left in the API server.
    """

    def __init__(self, place: Place) -> None:
        super().__init__(place.directory)
        self._place = place
        self._started = False
        self._hands_on = False

    async def start(self, *names: str) -> list[RunFile]:
        if not self._started and set(NAMES) <= set(names):
            await self._start_control_plane()
        missing = [name for name in names if name not in self.processes]
        await super().start(*missing)
        return [await self.ready(name) for name in names]

    async def _start_control_plane(self) -> None:
        self._started = True
        commands = {name: self.command(name) for name in NAMES}
        found = self._place.control_plane
        if found is not None and found.commands == commands:
            self.processes |= found.processes
            found.show()
            async with self.client() as client:
                await client.list(kinds.NAMESPACE)  # consistent: the cache has every change of `show`
        else:
            self._place.discard()
            await super().start(*NAMES)
            self._place.control_plane = ControlPlane.of(self.directory, self.processes, commands)
        self._hands_on = True

    def spawn(self, name: str) -> None:
        if not self._started:
            self._started = True
            self._place.discard()
        super().spawn(name)

    def secure(self, *more: str, mode: str = AUTHORIZATION_MODE) -> Pki:
        self._started = True
        self._place.discard()
        return super().secure(*more, mode=mode)

    def pause(self, name: str) -> None:
        self._hands_on = False
        super().pause(name)

    def close(self) -> None:
        """End the processes, print the ends of logs, and leave the control plane or an empty directory."""
        left = self._place.control_plane
        if left is not None and self._may_leave(left):
            for name in NAMES:
                del self.processes[name]
            self._end_all()
            self._print_logs()
            left.hide()
            return
        self._place.control_plane = None
        super().close()
        for path in self.directory.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _may_leave(self, left: ControlPlane) -> bool:
        if not self._hands_on or any(self.processes.get(name) is not left.processes[name] for name in NAMES):
            return False
        return left.is_as_started()


@pytest.fixture(scope="session")
def _place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    place = Place(tmp_path_factory.mktemp("cluster"))
    yield place
    place.discard()


@pytest.fixture
def cluster(_place: Place, tmp_path: Path) -> Iterator[Cluster]:
    """Yield a cluster in which no process has started. The logs of a failed test stay in its directory."""
    made = SharedCluster(_place)
    yield made
    for log in made.directory.glob("*.log"):
        shutil.copy(log, tmp_path)
    made.close()
