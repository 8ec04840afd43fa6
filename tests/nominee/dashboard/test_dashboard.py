"""The dashboard of a real cluster and of histories, over HTTP."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from nominee.lab.history.etcd_observer import Coverage
from nominee.lab.history.history_file import NAME, HistoryWriter
from nominee.localcluster.output import INTERRUPTED
from nominee.localcluster.supervisor.clock import wait_until
from nominee.localcluster.supervisor.directory import StateDirectory
from nominee.localcluster.supervisor.report import ready_lines
from nominee.machinery.process.serving_port import serving_token
from nominee.machinery.process.serving_port.serving_client import ServingPort, request
from nominee.machinery.runtime.clock import SystemClock
from tests.lab.invariants.histories import History, node, pod
from tests.localcluster.test_cluster import POD, Cluster
from tests.nominee.test_cli import nominee
from tests.support.eventually import eventually_sync
from tests.support.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[3]
METRIC = re.compile(r"\b(?:scheduler|apiserver|kubelet|cluster_autoscaler|process)_\w+")
LIVE_SECONDS_MAX = 1.0
"""A page shows a write within a second."""


@dataclass
class Page:
    """A browser that has opened the URL."""

    port: int
    cookie: str
    token: str = ""
    process: Any = field(default=None, repr=False)

    def ask(self, path: str, body: object = None, **headers: str) -> tuple[int, Mapping[str, str], bytes]:
        """Ask a path, with a body by POST; headers override the usual ones."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        given = {"cookie": self.cookie, "x-nominee-token": self.token, **headers}
        method, data = ("GET", None) if body is None else ("POST", json.dumps(body))
        try:
            connection.request(method, path, data, given)
            answer = connection.getresponse()
            return answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def json(self, path: str, body: object = None) -> Any:
        status, _, data = self.ask(path, body)
        assert status == 200, data
        return json.loads(data)

    def act(self, action: str, target: str, /, **fields: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.json(f"/api/actions/{action}", {"target": target, "fields": fields})
        return answer

    def row(self, name: str) -> dict[str, Any]:
        """The newest row of an object; {} if it does not exist."""
        revisions: list[dict[str, Any]] = self.json("/api/timeline")["revisions"]
        rows = (each["row"] for each in reversed(revisions) if each["n"] == name)
        return next(rows, None) or {}

    def wait(self, name: str, **values: object) -> dict[str, Any]:
        """Wait until a row has these values; return it."""
        assert wait_until(lambda: values.items() <= self.row(name).items(), PATIENCE_SECONDS, 0.2), name
        return self.row(name)

    def component(self, name: str) -> dict[str, Any]:
        found: list[dict[str, Any]] = self.json("/api/timeline")["components"]
        return next(each for each in found if each["name"] == name)


def opened(url: str) -> Page:
    """Return the page after its URL was opened."""
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", url)
    assert found, url
    page = Page(int(found[1]), "")
    status, headers, _ = page.ask(f"/?token={found[2]}")
    assert status == 303
    page.cookie = headers["set-cookie"].partition(";")[0]
    return page


@contextmanager
def dashboard(*words: str | Path) -> Iterator[Page]:
    """Run the command, and open its page."""
    command = [sys.executable, "-P", "-m", "nominee.cli", "dashboard", *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        page = opened(process.stdout.readline().rstrip("\n"))
        page.process = process
        yield page
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("dashboard") / "cluster"
    try:
        yield Cluster(directory, "--nodes", "2", "--history", "--dashboard")
    finally:
        nominee("down", "--kill", directory=directory)


@pytest.fixture(scope="module")
def page(cluster: Cluster) -> Page:
    """The page of the cluster's own dashboard, at the URL that `nominee up` prints."""
    (line,) = (line for line in ready_lines(cluster.document, "") if line.startswith("dashboard: "))
    found = opened(line.removeprefix("dashboard: "))
    found.token = found.json("/api/actions")["token"]
    return found


class Events:
    """The events that a page receives."""

    def __init__(self, page: Page, after: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", page.port), timeout=PATIENCE_SECONDS)
        lines = (f"GET /api/events?after={after} HTTP/1.1", f"Host: 127.0.0.1:{page.port}")
        self._socket.sendall("\r\n".join([*lines, f"Cookie: {page.cookie}", "", ""]).encode())
        self._lines = self._socket.makefile("r", encoding="utf-8", newline="\n")

    def __enter__(self) -> Events:
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._socket.close()

    def next(self, name: str) -> Any:
        """The data of the next event of this name."""
        event = ""
        for line in self._lines:
            if line.startswith("event: "):
                event = line.removeprefix("event: ").strip()
            elif line.startswith("data: ") and event == name:
                return json.loads(line.removeprefix("data: "))
        raise AssertionError("the stream has ended")

    def until(self, name: str) -> dict[str, Any]:
        """The first revision of an object of this name."""
        while True:
            for revision in self.next("revisions"):
                if revision["n"] == name:
                    return dict(revision)


def test_the_document_has_nodes_processes_and_queues(page: Page) -> None:
    status, headers, data = page.ask("/api/timeline", **{"accept-encoding": "gzip"})
    assert (status, headers["content-encoding"]) == (200, "gzip")
    document = json.loads(gzip.decompress(data))
    assert (document["source"], document["read_only"]) == ("live", False)

    def has_read_and_asked(found: dict[str, Any]) -> bool:
        healthy = {each["name"] for each in found["components"] if each["health"] == "ok"}
        nodes = {each["n"] for each in found["revisions"] if each["k"] == "Node"}
        return len(nodes) == 2 and "scheduler" in healthy and found["queues"] is not None

    # The dashboard reads the writes meanwhile, and a process has a second for an answer.
    document = eventually_sync(lambda: page.json("/api/timeline"), has_read_and_asked)
    nodes = {each["n"] for each in document["revisions"] if each["k"] == "Node"}
    assert nodes == {"node-0", "node-1"}
    processes = {each["name"]: each for each in document["components"]}
    assert processes["scheduler"]["state"] == "ready"
    assert processes["scheduler"]["health"] == "ok"
    assert set(document["queues"]) >= {"active", "backoff", "unschedulable", "gated", "binding", "nominated"}
    assert {"start"} <= {mark["kind"] for mark in document["marks"]}


def test_the_page_itself(page: Page) -> None:
    status, headers, data = page.ask("/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    for path in re.findall(rb'(?:src|href)="([^"]+)"', data):
        assert page.ask(f"/{path.decode().lstrip('/')}")[0] == 200, path
    assert page.ask("/static/../__init__.py")[0] == 404
    assert page.ask("/", cookie="")[0] == 401


def test_a_write_is_shown_within_a_second(page: Page, cluster: Cluster) -> None:
    end, clock, took = page.json("/api/timeline")["coverage"]["end"], SystemClock(), []
    with Events(page, end) as events:
        assert events.next("components")
        for name in ("quick-0", "quick-1"):
            (cluster.directory / "quick.yaml").write_text(POD.format(name=name, cpu="100m"))
            cluster("create", "-f", cluster.directory / "quick.yaml")
            written = clock.monotonic()
            assert events.until(name)["row"]["phase"] == "Pending"
            took.append(clock.monotonic() - written)
    assert max(took) < LIVE_SECONDS_MAX, took


def test_a_page_that_reads_nothing_does_not_stop_another(page: Page, cluster: Cluster) -> None:
    end = page.json("/api/timeline")["coverage"]["end"]
    with Events(page, 0), Events(page, end) as events:
        page.act("create", "", manifest=POD.format(name="beside", cpu="100m"))
        assert events.until("beside")["k"] == "Pod"


def test_the_history_and_each_revision_are_those_of_the_command(page: Page, cluster: Cluster) -> None:
    page.act("create", "", manifest=POD.format(name="past", cpu="100m"))
    page.wait("past", phase="Running", ready=True)

    # Without times: the page saw the writes at another moment than the recorder.
    def recorded() -> list[str]:
        return [without_time(line) for line in cluster("history", "pod/past").splitlines()]

    def shown() -> list[str]:
        return [without_time(line) for line in page.json("/api/history?object=Pod/default/past")["lines"]]

    # Events of the pod are still written.
    lines, _ = eventually_sync(
        lambda: (recorded(), shown()), lambda found: sorted(found[0]) == sorted(found[1])
    )
    numbers = [found[1] for line in lines if (found := re.match(r"revision (\d+), TIME: Pod ", line))]
    assert len(numbers) >= 3
    for number in numbers:
        detail = page.json(f"/api/object?object=Pod/default/past&revision={number}")
        assert re.search(r" by [\w:-]+ \(", detail["writer"]), detail["writer"]
        at = lines.index(without_time(detail["name"]))
        assert f"    {detail['changes'][0]}" == lines[at + 1]


def without_time(line: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\dT[0-9:.]+Z:", "TIME:", line, count=1)


def test_why_a_pod_waits(page: Page) -> None:
    page.act("create", "", manifest=POD.format(name="huge", cpu="1000"))

    def waits() -> bool:
        found = page.json("/api/why?object=Pod/default/huge")
        return "Insufficient cpu" in "\n".join(found["explain"]) and bool(found["decisions"])

    assert wait_until(waits, PATIENCE_SECONDS, 0.2)
    end = page.json("/api/timeline")["coverage"]["end"]
    then = page.json(f"/api/why?object=Pod/default/huge&revision={end - 1}")
    assert "Insufficient cpu" in "\n".join(then["explain"])

    def is_queued() -> bool:
        queues = page.json("/api/timeline")["queues"]
        return any(
            each["pod"] == "default/huge"
            for name in ("active", "backoff", "unschedulable")
            for each in queues[name]
        )

    # The scheduler is asked at intervals only.
    assert wait_until(is_queued, PATIENCE_SECONDS, 0.2)


def test_the_dashboard_of_grafana_has_metrics_that_exist(cluster: Cluster) -> None:
    token, served = serving_token.read(cluster.directory), ""
    groups = json.loads(cluster("status", "-o", "prometheus-sd"))
    jobs = {group["labels"]["job"] for group in groups}
    assert {"kube-apiserver", "kube-scheduler", "kube-controller-manager", "cluster-autoscaler"} <= jobs
    assert {group["labels"]["process"] for group in groups} >= {"scheduler", "kubelet-0"}
    for group in groups:
        (target,) = group["targets"]
        answer = request(ServingPort(target, token), "/metrics")
        assert answer.status == 200
        served += answer.text
    names = set(re.findall(r"^# TYPE (\S+)", served, re.M))
    document = json.loads((ROOT / "docs" / "grafana.json").read_text(encoding="utf-8"))
    exprs = [target["expr"] for panel in document["panels"] for target in panel["targets"]]
    found = {name for expr in exprs for name in METRIC.findall(expr)}
    used = {name if name in names else re.sub("_(bucket|sum|count)$", "", name) for name in found}
    assert len(used) > 15
    assert used - names == set()
    groupings = re.findall(r"by \(([^)]*)\)", "\n".join(exprs))
    labels = {label for grouping in groupings for label in grouping.split(", ")}
    known = {label for text in re.findall(r"\{([^}]*)\}", served) for label in re.findall(r"(\w+)=", text)}
    # A label of a metric that has no sample yet is known from its name only.
    assert labels - known - {"le", "process", "plugin", "reason"} == set()


@pytest.mark.slow
def test_actions_on_objects(page: Page, cluster: Cluster) -> None:
    page.act("create", "", manifest=POD.format(name="moved", cpu="100m"))
    where = page.wait("moved", phase="Running", ready=True)["node"]
    answer = page.act("resize", "Pod/default/moved", cpu="200m")
    assert answer["ok"], answer
    assert answer["command"].startswith("nominee patch pod moved -n default --subresource resize")
    page.wait("moved", cpu=200)
    answer = page.act("drain", f"Node/{where}")
    assert answer["ok"], answer
    assert "pod/moved evicted" in answer["output"]
    page.wait(where, unschedulable=True)
    assert page.act("uncordon", f"Node/{where}")["ok"]
    assert wait_until(lambda: "unschedulable" not in page.row(where), PATIENCE_SECONDS, 0.2)
    page.act("create", "", manifest=POD.format(name="doomed", cpu="100m"))
    assert page.act("delete", "Pod/default/doomed", grace="0")["output"] == 'pod "doomed" deleted'
    assert wait_until(lambda: not page.row("doomed"), PATIENCE_SECONDS, 0.2)
    refused = page.act("delete", "Pod/default/doomed", grace="0")
    assert (refused["ok"], "NotFound" in refused["output"]) == (False, True)
    assert page.act("verify", "")["output"].startswith("INVARIANT")


@pytest.mark.slow
def test_actions_on_processes(page: Page, cluster: Cluster) -> None:
    def becomes(name: str, **values: object) -> None:
        assert wait_until(lambda: values.items() <= page.component(name).items(), PATIENCE_SECONDS, 0.2), (
            page.component(name)
        )

    before = cluster.component("controllers")["pid"]
    dry = page.json("/api/actions/kill", {"target": "controllers", "fields": {}, "dry": True})
    assert dry == {"command": f"nominee restart controllers --kill --dir {cluster.directory}"}
    assert cluster.component("controllers")["pid"] == before
    assert page.act("kill", "controllers")["ok"]
    assert cluster.component("controllers")["pid"] != before

    def marks(key: str) -> set[str]:
        return {mark[key] for mark in page.json("/api/timeline")["marks"]}

    assert wait_until(lambda: {"kill", "restart"} <= marks("kind"), PATIENCE_SECONDS, 0.2)
    assert "controllers: killed" in marks("text")
    assert page.act("pause", "controllers")["ok"]
    becomes("controllers", state="paused")
    assert "controllers: paused" in marks("text")
    assert page.act("resume", "controllers")["ok"]
    assert page.act("failpoint", "scheduler", name="scheduler.bind.before", action="sleep(1)")["ok"]
    assert page.act("fault", "scheduler", action="delay(1)", to="apiserver", method="Bind")["ok"]
    becomes("scheduler", failpoints=["scheduler.bind.before: sleep(1)"], faults=["apiserver Bind delay(1)"])
    assert {"fault", "failpoint"} <= marks("kind")
    gate = "NominatedNodeNameForExpectation"
    assert page.act("gate", "scheduler", gate=gate, value="false")["ok"]
    becomes("scheduler", gates={gate: False}, failpoints=[], faults=[])
    assert page.act("stop", "controllers")["ok"]
    becomes("controllers", state="down")
    assert page.act("start", "controllers")["ok"]


def test_a_hostile_page_can_do_nothing(page: Page, cluster: Cluster) -> None:
    body = {"target": "controllers", "fields": {}}
    before = cluster.component("controllers")["pid"]
    for headers in (
        {"origin": "http://evil.example"},
        {"host": f"evil.example:{page.port}"},
        {"sec-fetch-site": "cross-site"},
        {"x-nominee-token": "guess"},
        {"cookie": ""},
    ):
        assert page.ask("/api/actions/kill", body, **headers)[0] in (401, 403), headers
    assert page.ask("/api/actions/kill", **{})[0] == 405
    assert cluster.component("controllers")["pid"] == before


def test_errors_name_the_mistake(page: Page) -> None:
    for path, status, text in (
        ("/api/object?object=Pod/default/none", 404, "did not exist"),
        ("/api/history?object=Thing/x", 404, "is not KIND/NAME"),
        ("/api/nothing", 404, ""),
    ):
        found, _, data = page.ask(path)
        assert (found, text in data.decode()) == (status, True)
    for body, status in (
        ([], 400),
        ({"fields": {"a": 1}}, 400),
        ({"target": "-x"}, 400),
        ({"target": ""}, 400),
    ):
        assert page.ask("/api/actions/kill", body)[0] == status
    assert page.ask("/api/actions/none", {})[0] == 404


def test_read_only_has_no_actions(cluster: Cluster) -> None:
    with dashboard("--dir", cluster.directory, "--read-only", "--verify") as page:
        assert page.json("/api/timeline")["read_only"] is True
        assert page.ask("/api/actions")[0] == 403
        assert page.ask("/api/actions/kill", {"target": "scheduler"})[0] == 403


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_quietly_while_a_page_follows(cluster: Cluster, number: signal.Signals) -> None:
    with dashboard("--dir", cluster.directory) as page:
        connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=PATIENCE_SECONDS)
        connection.request("GET", "/api/events", headers={"cookie": page.cookie})
        assert connection.getresponse().readline() == b"retry: 1000\n"
        page.process.send_signal(number)
        assert page.process.wait(PATIENCE_SECONDS) == INTERRUPTED
        assert page.process.stderr.read().strip() == "interrupted"
        connection.close()


def test_a_history_file(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / NAME, Coverage())
    writer.append(History().put(node("n1"), pod("a", cpu="8"), pod("a", cpu="8", node="n1")).revisions)
    writer.close()
    with dashboard(tmp_path) as page:
        document = page.json("/api/timeline")
        assert (document["source"], document["read_only"], document["coverage"]["end"]) == ("file", True, 3)
        assert page.ask("/api/actions")[0] == 403
        assert "Insufficient cpu" in "\n".join(
            page.json("/api/why?object=Pod/default/a&revision=2")["explain"]
        )
        taken = nominee("dashboard", tmp_path, "--port", str(page.port))
        assert taken.returncode == 1
        assert f"--port {page.port}: Address already in use; choose another one" in taken.stderr


@pytest.mark.slow
def test_a_cluster_that_is_down(tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    try:
        cluster = Cluster(directory, "--components", "etcd,apiserver")
        (directory / "config.yaml").write_text(
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: kept}, data: {a: b}}"
        )
        cluster("create", "-f", directory / "config.yaml")
        cluster("down")
        with dashboard("--dir", directory) as page:
            assert page.row("kept") == {}
            lines = page.json("/api/history?object=ConfigMap/default/kept")["lines"]
            assert any("ConfigMap default/kept created" in line for line in lines)
            document = page.json("/api/timeline")
            assert (document["source"], document["read_only"]) == ("directory", True)
            assert {each["state"] for each in document["components"]} == {"down"}
            # Its etcd has ended, so that the cluster may start again beside the page.
            assert StateDirectory(directory).live_run_files() == {}
            assert Cluster(directory).document["ready"]
            again = page.json("/api/history?object=ConfigMap/default/kept")["lines"]
            assert [line for line in again if "Ready" not in line] == [
                line for line in lines if "Ready" not in line
            ]
    finally:
        nominee("down", "--kill", directory=directory)


def test_without_a_history_the_error_has_the_remedy(tmp_path: Path) -> None:
    answer = nominee("dashboard", directory=tmp_path / "none")
    assert answer.returncode == 2
    assert "start it with `nominee up" in answer.stderr
    other = tmp_path / "other"
    other.write_text("x")
    assert "is no history" in nominee("dashboard", other).stderr
