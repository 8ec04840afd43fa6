"""The dashboard of a real cluster in a browser: live, any moment, each action; nothing for a hostile page."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nominee.machinery.runtime.clock import SystemClock
from tests.localcluster.test_cluster import POD, Cluster
from tests.nominee.test_cli import nominee
from tests.support.browser import NOTE_MOMENTS, Tab, chromium, open_tab
from tests.support.eventually import eventually_sync
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

pytestmark = pytest.mark.slow

LIVE_SECONDS_MAX = 1.0
"""A page shows a write within a second."""
LIVE_MANY_SECONDS_MAX = 2.0
"""With 1,000 nodes and 10,000 pods."""
MANY_SECONDS_MAX = 10 * PATIENCE_SECONDS
MANY = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: many, namespace: default}
spec:
  replicas: 10000
  selector: {matchLabels: {app: many}}
  template:
    metadata: {labels: {app: many}}
    spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 100m, memory: 64Mi}}}]}
"""
WRITES = 5
PATIENCE_MS = PATIENCE_SECONDS * 1000
COMPONENTS = "etcd,apiserver,scheduler,controllers,kubelet"
CLUSTER = ".tab > div > .actions"
OBJECT = ".object > .actions"
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start a browser for the tests of this file."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def cluster(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start a cluster, if there is a browser to look at it."""
    directory = tmp_path_factory.mktemp("browser") / "cluster"
    try:
        yield Cluster(directory, "--nodes", "3", "--components", COMPONENTS)
    finally:
        nominee("down", "--kill", directory=directory)


@contextmanager
def _dashboard(directory: Path, *words: str) -> Iterator[str]:
    command = [sys.executable, "-P", "-m", "nominee.cli", "dashboard", "--dir", str(directory), *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def url(cluster: Cluster) -> Iterator[str]:
    """Run the dashboard, and return its URL with the token."""
    with _dashboard(cluster.directory) as found:
        yield found


@pytest.fixture
def shown(browser: Browser, url: str) -> Iterator[Tab]:
    """Open the dashboard; the test fails if the console shows an error, or the page asks another server."""
    with open_tab(browser, url, ready=".badge.live") as found:
        yield found
    assert found.problems == []
    assert {_origin(each) for each in found.requests} == {_origin(url)}


def _origin(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])


def _select(shown: Tab, name: str) -> None:
    """Find an object; it may not be on the page yet."""
    shown.page.wait_for_function(
        """name => {
            const find = document.getElementById("find");
            find.value = name;
            find.dispatchEvent(new Event("input", { bubbles: true }));
            return document.getElementById("selected")?.textContent === name;
        }""",
        arg=name,
        timeout=PATIENCE_MS,
    )


def test_a_write_is_shown_within_a_second(cluster: Cluster, shown: Tab) -> None:
    delays = _delays(cluster, shown)
    assert max(delays) < LIVE_SECONDS_MAX, delays


def test_a_write_among_ten_thousand_pods_is_shown_within_two_seconds(
    browser: Browser, tmp_path: Path
) -> None:
    directory = tmp_path / "cluster"
    try:
        cluster = Cluster(directory, "--nodes", "1000", "--components", COMPONENTS)
        (directory / "many.yaml").write_text(MANY)
        cluster("create", "-f", directory / "many.yaml")
        with _dashboard(directory) as url, open_tab(browser, url, ready=".badge.live") as shown:
            running = shown.page.locator(".totals li", has_text="running")
            eventually_sync(
                running.locator("b").all_inner_texts,
                lambda found: found == ["10000"],
                limit_seconds=MANY_SECONDS_MAX,
            )
            delays = _delays(cluster, shown)
            assert shown.problems == []
        assert max(delays) < LIVE_MANY_SECONDS_MAX, delays
    finally:
        nominee("down", "--kill", directory=directory)


def _delays(cluster: Cluster, shown: Tab) -> list[float]:
    """Return the seconds from writes to the moments when the page shows them."""
    from lightkube import Client, KubeConfig
    from lightkube.resources.core_v1 import ConfigMap

    client: Any = Client(KubeConfig.from_file(cluster.directory / "kubeconfig"), namespace="default")
    clock = SystemClock()
    shown.page.evaluate(NOTE_MOMENTS)
    delays = []
    for number in range(WRITES):
        began = clock.now()
        written = client.create(ConfigMap.from_dict({"metadata": {"name": f"live-{number}"}}))
        delays.append(shown.time_of(int(written.metadata.resourceVersion)) - began)
    client._client._client.close()
    return delays


def _entries(lines: Iterable[str]) -> list[str]:
    """Return the revisions and Events of a history with their fields; etcd does not have their times."""
    found: list[str] = []
    for line in lines:
        if line.startswith("    ") and found:
            found[-1] += f"\n{line.strip()}"
        elif line.strip():
            found.append(TIME.sub("TIME", line))
    return [each for each in found if each.startswith("revision ")]


def _indented(text: str) -> Iterator[str]:
    """Yield the lines of an entry of the page as `nominee history` prints them."""
    first, *rest = (line for line in text.splitlines() if line.strip())
    yield first
    yield from (f"    {line.strip()}" for line in rest)


def test_every_revision_shows_what_history_prints(cluster: Cluster, shown: Tab) -> None:
    cluster.apply("scrubbed", cpu="100m")
    cluster.wait_running("scrubbed")
    cluster("delete", "pod", "scrubbed")
    _select(shown, "Pod default/scrubbed")
    shown.page.locator(".chip:text('deleted')").wait_for(timeout=PATIENCE_MS)
    printed = _entries(cluster("history", "pod/scrubbed").splitlines())

    def listed() -> list[str]:
        rows: list[str] = shown.page.locator(".history li").evaluate_all(
            "all => all.map(row => row.innerText)"
        )
        return _entries(line for row in rows for line in _indented(row))

    eventually_sync(listed, lambda found: found == printed, explain=lambda: printed)
    own = [each for each in printed if ": Event of " not in each]
    assert len(own) >= 4
    for entry in reversed(own):
        number = int(entry.split()[1].rstrip(","))
        shown.page.locator(f"[data-revision='{number}'] button").click()
        at = shown.page.locator(f".history li.at[data-revision='{number}']")
        at.wait_for()
        assert shown.moment() == number
        assert _entries(_indented(at.inner_text())) == [entry]


SWEPT = """async () => {
    const canvas = document.querySelector(".pane canvas"), area = canvas.getBoundingClientRect();
    const found = {};
    for (let y = area.top + 3; y < area.bottom; y += 9)
        for (let x = area.left + 3; x < area.right; x += 24) {
            canvas.dispatchEvent(new MouseEvent("mousemove", { clientX: x, clientY: y, bubbles: true }));
            await new Promise(done => queueMicrotask(() => queueMicrotask(done)));
            const [name, state] = [...document.querySelectorAll(".tip div")].map(line => line.textContent);
            const pod = /^Pod default\\/(.*)/.exec(name)?.[1];
            if (pod) found[pod] = / on (\\S+),/.exec(state)?.[1];
        }
    return found;
}"""
"""Points at all of the nodes panel, and returns the nodes of the pods that it paints, by name."""


def _placements(cluster: Cluster, names: Iterable[str]) -> dict[int, dict[str, str]]:
    """Return the nodes of pods by name, at each revision at which `nominee history` shows a change of them.

    A pod that has ended takes no room on its node, and the panel does not paint it.
    """
    placed: dict[str, str] = {}
    found: dict[int, dict[str, str]] = {}
    for entry in cluster.json("history", *(f"pod/{name}" for name in names))["entries"]:
        if entry.get("kind") != "Pod" or "event" in entry:
            continue
        before = dict(placed)
        new = {each["path"]: each["new"] for each in entry["fields"]}
        if entry["change"] == "deleted" or new.get("status.phase") in ("Succeeded", "Failed"):
            placed.pop(entry["name"], None)
        elif "spec.nodeName" in new:
            placed[entry["name"]] = new["spec.nodeName"]
        if placed != before:
            found[entry["revision"] - 1] = before
            found[entry["revision"]] = dict(placed)
    return found


def test_the_nodes_at_an_earlier_revision_have_the_pods_that_history_prints(
    cluster: Cluster, shown: Tab
) -> None:
    names = [f"placed-{number}" for number in range(4)]
    for name in names:
        cluster.apply(name)
    for name in names:
        cluster.wait_running(name)
    cluster("delete", "pod", names[1], "--grace-period", "0")
    cluster("delete", "pod", names[2])
    expected = _placements(cluster, names)
    assert len(expected) > 2 * len(names)
    shown.page.wait_for_function(
        "newest => Number(document.getElementById('revision').textContent) >= newest",
        arg=max(expected),
        timeout=PATIENCE_MS,
    )
    for number, placed in sorted(expected.items(), reverse=True):
        shown.page.evaluate("number => { location.hash = `revision=${number}`; }", number)
        shown.page.wait_for_function(
            "number => Number(document.getElementById('revision').textContent) <= number",
            arg=number,
            timeout=PATIENCE_MS,
        )
        swept = {name: node for name, node in shown.page.evaluate(SWEPT).items() if name in names}
        assert swept == placed, number


def _act(shown: Tab, where: Locator, title: str, closes: bool = True, /, **fields: str) -> tuple[str, str]:
    """Open an action, fill in its fields and run it; return its command and the output.

    An object that the action deletes has no actions afterwards: then it `closes` nothing.
    """
    where.get_by_role("button", name=title, exact=True).click()
    form = where.locator("form")
    form.wait_for()
    for name, value in fields.items():
        field = form.locator(f"[name={name}]")
        if field.evaluate("each => each.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
    form.locator(".run:not([disabled])").wait_for()
    # A command is asked for at each key: the last one has the last value.
    for value in fields.values():
        form.locator(".command", has_text=value.splitlines()[-1].strip()).wait_for()
    command = form.locator(".command").inner_text()
    form.locator(".run").click()
    output = where.locator("pre.done, pre.bad")
    output.wait_for(timeout=PATIENCE_MS)
    assert output.get_attribute("class") == "done", output.inner_text()
    text = output.inner_text()
    if closes:
        where.get_by_role("button", name=title, exact=True).click()
    return command, text


def test_a_pod_is_created_resized_and_deleted(cluster: Cluster, shown: Tab) -> None:
    shown.page.click("#tab-components")
    manifest = POD.format(name="made", cpu="100m")
    command, output = _act(shown, shown.page.locator(CLUSTER), "Create objects", manifest=manifest)
    assert command.startswith("nominee create -f - ")
    assert "cpu: 100m" in command
    assert output == "pod/made created"
    cluster.wait_running("made")
    _select(shown, "Pod default/made")
    actions = shown.page.locator(OBJECT)
    command, _ = _act(shown, actions, "Resize", cpu="250m")
    assert "patch pod made -n default --subresource resize" in command
    assert cluster.pod("made")["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "250m"
    command, _ = _act(shown, actions, "Delete", False, grace="0")
    assert "delete pod made -n default --grace-period 0" in command
    shown.page.locator(".chip:text('deleted')").wait_for(timeout=PATIENCE_MS)


def test_nodes_and_processes_have_actions(cluster: Cluster, shown: Tab) -> None:
    _select(shown, "Node node-1")
    actions = shown.page.locator(OBJECT)
    command, _ = _act(shown, actions, "Drain")
    assert command == "kubectl drain node-1 --ignore-daemonsets --delete-emptydir-data --force"
    cordoned = shown.page.locator(".chip:text('cordoned')")
    cordoned.wait_for(timeout=PATIENCE_MS)
    _act(shown, actions, "Uncordon")
    cordoned.wait_for(state="detached", timeout=PATIENCE_MS)
    shown.page.click("#tab-components")
    row = shown.page.locator("li.component", has=shown.page.locator("b", has_text="scheduler"))
    row.locator("summary").click()
    pid = cluster.component("scheduler")["pid"]
    for title, fields, text in (
        ("Kill and start again", {}, "restart scheduler --kill"),
        ("Pause", {}, "pause scheduler"),
        ("Resume", {}, "resume scheduler"),
        ("Arm a failpoint", {"action": "sleep(1)"}, "failpoint scheduler scheduler."),
        ("Set a fault of calls", {"action": "cut"}, "fault scheduler cut"),
        ("Stop", {}, "stop scheduler"),
        ("Start", {}, "start scheduler"),
        ("Set a feature gate", {"gate": "PodLevelResources", "value": "true"}, "PodLevelResources=true"),
    ):
        command, _ = _act(shown, row, title, **fields)
        assert text in command
    assert cluster.component("scheduler")["pid"] != pid
    command, _ = _act(shown, shown.page.locator(CLUSTER), "Check the invariants")
    assert command.startswith("nominee verify")


def test_a_page_that_only_shows_has_no_actions(browser: Browser, cluster: Cluster) -> None:
    with (
        _dashboard(cluster.directory, "--read-only") as url,
        open_tab(browser, url, ready=".badge.live") as found,
    ):
        found.page.click("#tab-components")
        found.page.wait_for_selector("li.component")
        assert found.page.locator(".actions").count() == 0
        assert found.problems == []


ATTEMPTS = 9
ATTACK = """async target => {
    const found = {};
    const attempt = async (name, act) => { found[name] = await act().catch(() => "refused"); };
    const asked = (path, options) => fetch(target + path, { credentials: "include", ...options });
    const body = JSON.stringify({ fields: { manifest: "kind: Pod" }, target: "" });
    const create = { method: "POST", body };
    const loads = (name, path) => new Promise((done, failed) => {
        const tag = document.createElement(name);
        tag.src = target + path;
        tag.onload = () => done("loaded");
        tag.onerror = failed;
        document.body.append(tag);
    });
    await attempt("read", async () => (await asked("/api/timeline")).status);
    await attempt("token", async () => (await (await asked("/api/actions")).json()).token);
    await attempt("blind", async () => (await asked("/api/timeline", { mode: "no-cors" })).type);
    const blind = { ...create, mode: "no-cors" };
    await attempt("post", async () => (await asked("/api/actions/create", blind)).type);
    const headers = { "X-Nominee-Token": "x" };
    await attempt("header", async () => (await asked("/api/actions/create", { ...create, headers })).status);
    await attempt("script", () => loads("script", "/api/actions"));
    await attempt("module", () => loads("script", "/static/main.js"));
    await attempt("events", () => new Promise((done, failed) => {
        const events = new EventSource(target + "/api/events", { withCredentials: true });
        events.onopen = () => done("open");
        events.onerror = () => { events.close(); failed(); };
    }));
    await attempt("frame", () => loads("iframe", "/").then(
        () => { try { return frames[0].document ? "readable" : "refused" } catch { return "refused" } }));
    return found;
}"""


class _Hostile(BaseHTTPRequestHandler):
    """A server of an empty page."""

    def do_GET(self) -> None:
        body = b"<!doctype html><title>hostile</title><body>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_hostile_page_can_do_nothing(cluster: Cluster, shown: Tab, name: str) -> None:
    """Another port of this machine is the same site: the browser sends the cookie with its requests."""
    before = len(cluster.json("get", "pods", "-A")["items"])
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hostile)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        other = shown.page.context.new_page()
        sent: list[str] = []
        answered: list[str] = []
        other.on("request", lambda each: sent.append(each.url))
        other.on("response", lambda each: answered.append(each.url))
        other.goto(f"http://{name}:{server.server_port}/")
        target = _origin(shown.page.url)
        found = other.evaluate(ATTACK, target)
        assert len(found) == ATTEMPTS
        assert set(found.values()) == {"refused"}, found
        assert len([url for url in sent if url.startswith(f"{target}/api/")]) >= ATTEMPTS - 2
        assert [url for url in answered if url.startswith(f"{target}/api/")] == []
        other.close()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert len(cluster.json("get", "pods", "-A")["items"]) == before
