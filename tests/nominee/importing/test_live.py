"""Clusters that a kubeconfig names: what is read of them, and the errors of those that cannot be read."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner, Result

from nominee.command_group import nominee
from nominee.explain.cluster import KINDS
from nominee.scheduler.shell.process.informers import LISTED_KINDS, RESOURCE_KINDS

NODE = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}}}
POD = {
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
}
Answers = dict[str, Any]


def rows(**plurals: str) -> Answers:
    return {"resources": [{"name": name, "kind": kind, "verbs": ["list"]} for name, kind in plurals.items()]}


def items(*objects: Mapping[str, Any]) -> Answers:
    return {"metadata": {}, "items": list(objects)}


def answers() -> Answers:
    """Return what a small cluster answers, by path; a number is a status."""
    policy = {"versions": [{"groupVersion": "policy/v1"}], "preferredVersion": {"groupVersion": "policy/v1"}}
    other = {"versions": [{"groupVersion": "a.io/v1"}], "preferredVersion": {"groupVersion": "a.io/v1"}}
    return {
        "/version": {"gitVersion": "v1.35.2-eks-1"},
        "/apis": {"groups": [policy, other]},
        "/api/v1": rows(nodes="Node", pods="Pod", secrets="Secret"),
        "/api/v1/nodes": items(NODE),
        "/api/v1/pods": items(POD),
        "/apis/policy/v1": rows(poddisruptionbudgets="PodDisruptionBudget"),
        "/apis/policy/v1/poddisruptionbudgets": items(),
    }


@contextmanager
def serving(answers: Answers) -> Iterator[tuple[str, list[str]]]:
    """Yield the address of a server with these answers, and the paths that it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            asked.append(path)
            answer = answers.get(path, 404)
            status = answer if isinstance(answer, int) else 200
            body = json.dumps({"message": "may not"} if isinstance(answer, int) else answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def kubeconfig(folder: Path, server: str, **context: str) -> Path:
    """Write a kubeconfig; its context has no user unless one is given."""
    path = folder / "kubeconfig"
    document = {
        "clusters": [{"name": "one", "cluster": {"server": server}}],
        "contexts": [{"name": "here", "context": {"cluster": "one", **context}}],
        "current-context": "here",
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def explain(path: Path, *words: str) -> Result:
    result = CliRunner().invoke(nominee, ["explain", "--kubeconfig", str(path), *words])
    assert "Traceback" not in result.output
    return result


def test_only_what_the_scheduler_needs_is_read(tmp_path: Path) -> None:
    with serving(answers()) as (server, asked):
        result = explain(kubeconfig(tmp_path, server), "pod", "shop/web")
    assert result.stdout.startswith("shop/web  priority 0  goes to n1\n"), result.output
    assert result.stderr == ""
    assert asked == [
        *("/version", "/apis", "/api/v1", "/api/v1/nodes", "/api/v1/pods"),
        *("/apis/policy/v1", "/apis/policy/v1/poddisruptionbudgets"),
    ]


def test_what_is_not_listed_is_a_warning_but_nodes_and_pods_are_needed(tmp_path: Path) -> None:
    without = answers()
    without["/apis/policy/v1/poddisruptionbudgets"] = 403
    with serving(without) as (server, _):
        result = explain(kubeconfig(tmp_path, server), "pod", "shop/web")
        assert (result.exit_code, result.stderr) == (
            0,
            "warning: PodDisruptionBudget is not listed: may not\n",
        )
        without["/api/v1/pods"] = 403
        result = explain(kubeconfig(tmp_path, server), "pod", "shop/web")
    assert result.exit_code == 1
    assert "without the list of Pods no pod can be explained" in result.stderr


@pytest.mark.parametrize(
    ("version", "gate", "message"),
    [
        ("v1.35.2-eks-1", "NominatedNodeNameForExpectation", ""),
        ("v1.31.0", "", "warning: the cluster's version, 1.31, cannot be emulated\n"),
        ("v1.33.4", "NominatedNodeNameForExpectation", "PreAlpha at emulated version 1.33"),
    ],
)
def test_the_clusters_version_decides(tmp_path: Path, version: str, gate: str, message: str) -> None:
    with serving({**answers(), "/version": {"gitVersion": version}}) as (server, _):
        words = ["--feature-gates", f"{gate}=true"] if gate else []
        result = explain(kubeconfig(tmp_path, server), *words)
    assert message in result.stderr
    assert bool(result.stderr) is bool(message)


@pytest.mark.parametrize("status", [401, 500])
def test_a_cluster_that_refuses(tmp_path: Path, status: int) -> None:
    with serving({**answers(), "/apis": status}) as (server, _):
        result = explain(kubeconfig(tmp_path, server), "pod", "shop/web")
    assert result.exit_code == 1
    assert result.stderr.endswith(f"kubeconfig: {server} refuses: /apis: {status} may not\n")


@pytest.mark.parametrize(
    ("server", "context", "message"),
    [
        ("http://127.0.0.1:1", {}, "http://127.0.0.1:1 cannot be read: [Errno 111] Connection refused"),
        ("ftp://a", {}, "ftp://a cannot be read: "),
        ("http://a", {"cluster": "two"}, "the context 'here' names 'two', which it lacks"),
        ("http://a", {"user": "two"}, "the context 'here' names 'two', which it lacks"),
    ],
)
def test_clusters_that_cannot_be_reached(
    tmp_path: Path, server: str, context: dict[str, str], message: str
) -> None:
    result = explain(kubeconfig(tmp_path, server, **context), "pod", "shop/web")
    assert result.exit_code == 1
    assert f"kubeconfig: {message}" in result.stderr


@pytest.mark.parametrize("text", ["", "a: [", "[]", '{"kind": "List"}', '{"clusters": 3, "contexts": []}'])
def test_a_file_that_is_no_kubeconfig(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text, encoding="utf-8")
    for words in (["explain"], ["import", "--dry-run"]):
        result = CliRunner().invoke(nominee, [*words, "--kubeconfig", str(path)])
        assert (result.exit_code, result.stderr) == (1, f"Error: {path}: is no kubeconfig\n")


def test_all_kinds_that_the_scheduler_watches_are_read() -> None:
    assert {*RESOURCE_KINDS.values(), *LISTED_KINDS} < set(KINDS)
