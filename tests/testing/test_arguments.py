"""The arguments of a cluster for tests, names of objects, and messages, without a process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nominee.testing
from nominee.lab.demo_plugins import SlowPreBind
from nominee.localcluster.cluster import ClusterError
from nominee.machinery.api import kinds
from nominee.machinery.wire.files.manifest_objects import ManifestError
from nominee.machinery.wire.files.manifests import load_documents
from nominee.scheduler.plugin_loader import PluginLoadError
from nominee.testing.clients import connect
from nominee.testing.cluster import Cluster
from nominee.testing.history import ObjectRevision, run
from nominee.testing.references import node, pod, ref
from nominee.testing.rest import path_of
from nominee.testing.simulations import simulate
from nominee.testing.up_words import words_of


def test_options_as_words(tmp_path: Path) -> None:
    words = words_of(
        2, {"scheduler": "1.36"}, {"": {"A": True}, "kubelet": {"B": False}}, "own.yaml", ["m:P"], tmp_path
    )
    assert words == [
        *("--nodes", "2", "--emulated-version", "scheduler=1.36"),
        *("--feature-gates", "A=true", "--feature-gates", "kubelet=B=false"),
        *("--arg", "scheduler=--plugin=m:P", "--scheduler-config", "own.yaml"),
    ]
    assert words_of(3, "1.36", {}, None, (), tmp_path) == ["--nodes", "3", "--emulated-version", "1.36"]


def test_versions_and_gates_have_a_form(tmp_path: Path) -> None:
    wrong: Any = {"Foo": True}
    with pytest.raises(TypeError, match=r"\{'': \{'Gate': True\}\} for all components; not \{'Foo': True\}"):
        Cluster(feature_gates=wrong, directory=tmp_path)
    version: Any = 1.36
    with pytest.raises(TypeError, match=r"emulated_version is '1\.36' or .*, not 1\.36"):
        simulate("any.yaml", emulated_version=version)
    seeds: Any = 5
    with pytest.raises(TypeError, match=r"as range\(100\); not 5"):
        simulate("any.yaml", seeds)


def test_plugins_without_a_configuration_are_enabled(tmp_path: Path) -> None:
    words = words_of(1, "", {}, None, [SlowPreBind, "mine:Other"], tmp_path / "new")
    file = tmp_path / "new" / "scheduler.yaml"
    assert words == [
        *("--nodes", "1", "--arg", "scheduler=--plugin=nominee.lab.demo_plugins:SlowPreBind"),
        *("--arg", "scheduler=--plugin=mine:Other", "--scheduler-config", str(file)),
    ]
    (document,) = load_documents(file.read_text())
    (profile,) = document["profiles"]
    assert profile["plugins"]["multiPoint"]["enabled"] == [{"name": "SlowPreBind"}, {"name": "Other"}]


def test_an_object_that_is_no_plugin_starts_no_cluster(tmp_path: Path) -> None:
    wrong: Any = int
    with pytest.raises(PluginLoadError, match='plugin "builtins:int": expected a subclass of nominee'):
        words_of(1, "", {}, None, [wrong], tmp_path)


def test_references() -> None:
    assert pod("a").in_namespace("team") == (kinds.POD, "team")
    assert pod("a", "other").in_namespace("team") == (kinds.POD, "other")
    assert node("n").in_namespace("team") == (kinds.NODE, "")
    kind, namespace = ref("deploy", "web").in_namespace("team")
    assert path_of(kind, namespace, "web", "scale") == "/apis/apps/v1/namespaces/team/deployments/web/scale"
    assert path_of(kinds.POD, "") == "/api/v1/pods"
    with pytest.raises(ValueError, match="Podd"):
        ref("Podd", "a").in_namespace("team")


def test_a_revision_shows_some_fields() -> None:
    fields = [{"path": f"spec.f{index}", "old": None, "new": 1} for index in range(10)]
    about = {"kind": "Pod", "namespace": "team", "name": "a", "change": "updated", "writer": None}
    revision = ObjectRevision.of({"revision": 7, "time": None, **about, "fields": fields})
    lines = str(revision).splitlines()
    assert lines[0] == "revision 7, time unknown: Pod team/a updated"
    assert lines[1] == "    spec.f0: 1"
    assert lines[-1] == "    ... 2 more fields"


def test_a_library_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "lightkube", None)
    with pytest.raises(ImportError, match="install it: pip install lightkube") as raised:
        connect("lightkube", tmp_path / "kubeconfig", "default")
    assert raised.value.name == "lightkube"


@pytest.mark.processes
def test_a_cluster_that_does_not_run(tmp_path: Path) -> None:
    cluster = Cluster.attach(tmp_path)
    with pytest.raises(ClusterError, match="no API server runs in"):
        cluster.get(pod("a"))
    with pytest.raises(ClusterError, match="no cluster runs in"):
        cluster.restart("scheduler")
    with pytest.raises(TimeoutError, match=r"Pod default/a: not true within 0.1 s; no API server runs in"):
        cluster.wait(pod("a"), "true", timeout=0.1)
    with pytest.raises(ClusterError, match="no etcd runs in"):
        cluster.history()
    with pytest.raises(ClusterError, match="there is no log of scheduler"):
        cluster.logs("scheduler")
    with pytest.raises(ValueError, match="'apply' is no type of patches"):
        cluster.patch(pod("a"), {}, type="apply")
    with pytest.raises(ValueError, match="detach=True"):
        cluster.keep()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda cluster: cluster.get("pod/a"), TypeError, r"'pod/a' is no reference; write pod\(NAME\)"),
        (lambda cluster: cluster.wait("pod/a", "true"), TypeError, "'pod/a' is no reference"),
        (lambda cluster: cluster.history("pod/a"), TypeError, "'pod/a' is no reference"),
        (lambda cluster: cluster.wait(pod("a"), {}), ValueError, "{} is no condition; .*'exists': True"),
        (lambda cluster: cluster.wait(pod("a"), ""), ValueError, "'' is no condition; "),
        (lambda cluster: cluster.wait(pod("a"), None), ValueError, "None is no condition; "),
        (lambda cluster: cluster.apply(""), ManifestError, "text: there is no object in it"),
        (lambda cluster: cluster.apply("# nothing\n"), ManifestError, "text: there is no object in it"),
        (lambda cluster: cluster.apply(None), TypeError, "are a file, a text, or dictionaries; not None"),
        (lambda cluster: cluster.create([None]), TypeError, "not None"),
        (lambda cluster: cluster.apply("none.yaml"), FileNotFoundError, "none.yaml"),
    ],
)
def test_arguments_that_are_wrong(
    tmp_path: Path, call: Callable[[Cluster], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(Cluster.attach(tmp_path))


@pytest.mark.processes
def test_a_command_that_fails() -> None:
    failing = [sys.executable, "-c", "import sys; print('Error: no'.strip(), file=sys.stderr); sys.exit(3)"]
    with pytest.raises(ClusterError, match=r"^no$"):
        run(failing)
    assert run(failing, also=3) == ""


def test_every_name_of_the_package() -> None:
    for name in nominee.testing.__all__:
        assert getattr(nominee.testing, name) is not None
    with pytest.raises(AttributeError, match="Clutser"):
        getattr(nominee.testing, "Clutser")  # noqa: B009  # a type checker knows that it does not exist


def test_a_cluster_loads_neither_grpc_nor_numpy() -> None:
    text = (
        "import sys; from nominee.testing import AsyncCluster, Cluster, pod, ref; "
        "print(*{'grpc', 'numpy', 'aetcd', 'click'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""
