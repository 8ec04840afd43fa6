"""`nominee bench watch`: lists of many pods, and many watchers while pods change, on real processes.

The cluster is etcd and the API server. Pods are created, then listed whole and in chunks in each encoding.
Then, for each encoding of watches, another process opens watches on all pods while some pods per second are
patched. One more watcher never reads: it measures the cost of a client that hangs. This process forks, so it
does not use gRPC.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import statistics
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

from nominee.lab.bench.figures import percentile
from nominee.lab.bench.load.workloads import INIT
from nominee.lab.bench.machine import busy_seconds, machine
from nominee.lab.bench.processes import BenchError, Helper, Series, creators
from nominee.lab.bench.watches.watchers import FORMS
from nominee.localcluster.own_cluster import cluster
from nominee.localcluster.process_usage import cpu_seconds, pss_bytes
from nominee.localcluster.supervisor.directory import StateDirectory
from nominee.machinery.client import credentials
from nominee.machinery.process.run_files import RunFile
from nominee.machinery.runtime.clock import Clock, SystemClock

_WORKLOAD = "SchedulingBasic"
_COMPONENTS = "etcd,apiserver"
_CREATING_AT_ONCE = 64
_LIST_ROUNDS = 5
_CHUNK = 500
_END_SECONDS_MAX = 60.0
_SLOWDOWN_MAX = 10
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_LISTS = {
    "JSON": {"Accept": "application/json"},
    "JSON, gzip": {"Accept": "application/json", "Accept-Encoding": "gzip"},
    "protobuf": {"Accept": _PROTOBUF},
    "Table": {"Accept": _TABLE},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """Settings of a run: how many pods, watchers and changes."""

    watchers: int
    rate: int
    pods: int
    seconds: int
    slow: int


def run(directory: Path, settings: WatchSettings, up_options: Sequence[str]) -> dict[str, object]:
    """Run the benchmark on a new cluster in `directory`; return the report.

    Raises:
        BenchError, ClusterStartError: a process failed.
        TimeoutError: a step took too long.
    """
    series = Series(workload=_WORKLOAD, name=INIT, count=settings.pods, concurrency=_CREATING_AT_ONCE)
    with cluster(directory, up_options, _COMPONENTS), creators(directory, [series]) as by_name:
        by_name[INIT].go()
        created = by_name[INIT].receive()
        bench = _Bench(directory, settings)
        started = busy_seconds()
        begun = bench.clock.monotonic()
        report = {
            "benchmark": "watch",
            "settings": asdict(settings),
            "created": {"podsPerSecond": round(created, 1)},
            "lists": bench.lists(),
            "watches": {form: bench.watched(form) for form in FORMS},
            "memoryMiB": {"apiserver after all": bench.memory()},
        }
        elsewhere = busy_seconds() - started - bench.own_seconds()
        capacity = (bench.clock.monotonic() - begun) * len(os.sched_getaffinity(0))
        return report | {"machine": machine() | {"busyElsewhere": round(max(elsewhere, 0.0) / capacity, 2)}}


class _Bench:
    """The steps of one run."""

    def __init__(self, directory: Path, settings: WatchSettings) -> None:
        self._directory = directory
        self._settings = settings
        self.clock: Clock = SystemClock()
        found = RunFile.read(directory, "apiserver")
        if found is None:
            raise BenchError("the API server has no run file")
        self._run_file = found
        self._shown = credentials.find(found, directory, credentials.ADMIN)
        self._begun = self.own_seconds()

    def own_seconds(self) -> float:
        """Return the processor time of the processes under test and of those that measure."""
        pids = [file["pid"] for file in StateDirectory(self._directory).live_run_files().values()]
        used = os.times()
        mine = used.user + used.system + used.children_user + used.children_system
        return sum(cpu_seconds(pid) or 0.0 for pid in pids) + mine

    def memory(self) -> float:
        """Return the API server's memory: PSS in MiB."""
        return round((pss_bytes(self._run_file.pid) or 0) / 2**20, 1)

    # Lists.

    def lists(self) -> dict[str, object]:
        """Return medians in milliseconds, by encoding: a list's first byte, a whole list, all its chunks."""
        found: dict[str, object] = {}
        for name, headers in _LISTS.items():
            before = self.memory()
            rounds = [self._whole(headers) for _ in range(_LIST_ROUNDS)]
            chunks = [self._chunks(headers) for _ in range(_LIST_ROUNDS)] if "gzip" not in name else []
            found[name] = {
                "megabytes": round(rounds[0][2] / 1e6, 2),
                "firstByteMilliseconds": _median(each[0] for each in rounds),
                "wholeMilliseconds": _median(each[1] for each in rounds),
                "chunksOf500Milliseconds": _median(chunks) if chunks else None,
                "memoryMiB": [before, self.memory()],
            }
        return found

    def _get(
        self, connection: http.client.HTTPConnection, path: str, headers: dict[str, str]
    ) -> tuple[float, bytes]:
        """Return the seconds to the first byte, and the body."""
        begun = self.clock.monotonic()
        shown = {"Authorization": self._shown.metadata[0][1]} if self._shown is not None else {}
        connection.request("GET", path, headers={**headers, **shown})
        answer = connection.getresponse()
        first = answer.read(1)
        seconds = self.clock.monotonic() - begun
        body = first + answer.read()
        if answer.status != 200:
            raise BenchError(f"{path} returned {answer.status}: {body[:200]!r}")
        return seconds, body

    @contextmanager
    def _connection(self) -> Iterator[http.client.HTTPConnection]:
        address = str(self._run_file.document["rest"])
        if self._shown is None:
            made = http.client.HTTPConnection(address, timeout=60.0)
        else:
            context = ssl.create_default_context(cadata=self._shown.authority.decode())
            made = http.client.HTTPSConnection(address, timeout=60.0, context=context)
        try:
            yield made
        finally:
            made.close()

    def _whole(self, headers: dict[str, str]) -> tuple[float, float, int]:
        with self._connection() as connection:
            begun = self.clock.monotonic()
            first, body = self._get(connection, "/api/v1/pods", headers)
            return first, self.clock.monotonic() - begun, len(body)

    def _chunks(self, headers: dict[str, str]) -> float:
        """Return seconds.

        The tokens come from a list that is not measured, since protobuf is not decoded here.
        """
        spent, token = 0.0, ""
        with self._connection() as connection:
            for _ in range(self._settings.pods // _CHUNK + 1):
                path = f"/api/v1/pods?limit={_CHUNK}" + (f"&continue={quote(token)}" if token else "")
                begun = self.clock.monotonic()
                _, body = self._get(connection, path, headers)
                spent += self.clock.monotonic() - begun
                if headers["Accept"] == _PROTOBUF:
                    _, body = self._get(connection, path, {"Accept": _TABLE})
                token = json.loads(body)["metadata"].get("continue", "")
                if not token:
                    return spent
        raise BenchError("the list has too many pages")

    # Watches.

    def watched(self, form: str) -> dict[str, object]:
        """Return the delays, processor time and memory of one encoding."""
        settings = self._settings
        since = self._newest()
        before = self.memory()
        with self._watching(form, since) as process:
            standing = self.memory()
            cpu = cpu_seconds(self._run_file.pid) or 0.0
            writes = self._change()
            cpu = (cpu_seconds(self._run_file.pid) or 0.0) - cpu
            after = self.memory()
            process.go()
            seen = process.receive(_END_SECONDS_MAX)
        wanted = len(writes) * settings.watchers
        return {
            **seen,
            "expected": wanted,
            "changesPerSecond": round(len(writes) / settings.seconds, 1),
            "writeMilliseconds": {f"p{p}": round(percentile(writes, p) * 1000, 2) for p in (50, 99)},
            "cpuMillisecondsPerChange": round(cpu * 1000 / len(writes), 2),
            "cpuMicrosecondsPerEvent": round(cpu * 1e6 / max(wanted, 1), 1),
            "memoryMiB": {"before": before, "watching": standing, "after": after},
        }

    def _newest(self) -> str:
        with self._connection() as connection:
            _, body = self._get(connection, "/api/v1/pods?limit=1", {"Accept": "application/json"})
        return str(json.loads(body)["metadata"]["resourceVersion"])

    @contextmanager
    def _watching(self, form: str, since: str) -> Iterator[Helper]:
        counts = (self._settings.watchers, self._settings.slow)
        function = "nominee.lab.bench.watches.watchers:watch_pods"
        with closing(Helper("watches", function, self._directory, form, *counts, since)) as watchers:
            watchers.receive()
            yield watchers

    def _change(self) -> list[float]:
        """Patch pods; return the seconds that each patch took."""
        settings = self._settings
        counts = (settings.pods, settings.rate, settings.seconds)
        function = "nominee.lab.bench.load.changer:change_pods"
        with closing(Helper("patches pods", function, self._directory, INIT, *counts)) as changer:
            took: list[float] = changer.receive(settings.seconds * _SLOWDOWN_MAX + _END_SECONDS_MAX)
        return took


def _median(seconds: Iterable[float]) -> float:
    """Return the median in milliseconds."""
    return round(statistics.median(seconds) * 1000, 1)
