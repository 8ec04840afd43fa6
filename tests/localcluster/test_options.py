"""Options that speak about components, and the plan they make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nominee.localcluster.credentials.identities import tokens
from nominee.localcluster.plan import UpOptions, build
from nominee.localcluster.up_options.config_file import read_config
from nominee.localcluster.up_options.options import (
    ALL,
    OptionError,
    parse_assignments,
    parse_components,
    parse_gates,
    parse_versions,
)

CORE = ("etcd", "apiserver", "scheduler", "controllers", "kubelet")


def options(**changes: Any) -> UpOptions:
    return UpOptions(**{"directory": Path("/d"), "components": CORE, **changes})


def command(plan_options: UpOptions, name: str) -> list[str]:
    return next(list(p.argv) for p in build(plan_options).spec.processes if p.name == name)


def value(argv: list[str], option: str) -> str:
    return argv[argv.index(option) + 1]


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (["scheduler=1.36,apiserver=1.37"], {"scheduler": "1.36", "apiserver": "1.37"}),
        (["kube-scheduler=v1.36.2"], {"scheduler": "1.36"}),
        (["1.36", "kubelet-1=1.34"], {ALL: "1.36", "kubelet-1": "1.34"}),
        (["scheduler=1.36", "scheduler=1.35"], {"scheduler": "1.35"}),
    ],
)
def test_versions(texts: list[str], wanted: dict[str, str]) -> None:
    assert parse_versions("--emulated-version", texts) == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scheduler=1.12", "--emulated-version: .*1.12 is not between"),
        ("scheduler=new", 'could not parse "new" as version'),
        ("sheduler=1.36", "unknown component 'sheduler'; known are etcd, apiserver"),
        ("etcd=1.36", "etcd has no emulated version"),
    ],
)
def test_versions_that_cannot_be(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_versions("--emulated-version", [text])


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (["scheduler=A=true,B=false,apiserver=C=true"],
         {"scheduler": {"A": True, "B": False}, "apiserver": {"C": True}}),
        (["A=true", "kubelet=A=false"], {ALL: {"A": True}, "kubelet": {"A": False}}),
        (["kube-apiserver:A=1"], {"apiserver": {"A": True}}),
    ],
)  # fmt: skip
def test_gates(texts: list[str], wanted: dict[str, dict[str, bool]]) -> None:
    assert parse_gates("--feature-gates", texts) == wanted


@pytest.mark.parametrize("text", ["scheduler=A", "A", "scheduler=A=maybe", "=true", "scheduler==true"])
def test_gates_that_cannot_be(text: str) -> None:
    with pytest.raises(OptionError, match=r"is not COMPONENT=Gate=true"):
        parse_gates("--feature-gates", [text])


def test_components_in_the_order_of_starting() -> None:
    assert parse_components("--components", "kubelet, kube-scheduler,etcd,kube-apiserver") == (
        "etcd",
        "apiserver",
        "scheduler",
        "kubelet",
    )
    with pytest.raises(OptionError, match="names no component"):
        parse_components("--components", " ,")
    with pytest.raises(OptionError, match="kubelet-1 is one process"):
        parse_components("--components", "kubelet-1")


def test_assignments_keep_their_text() -> None:
    text = "scheduler=scheduler.bind.before=2*sleep(10)->crash"
    assert parse_assignments("--failpoints", [text], "x") == {
        "scheduler": ["scheduler.bind.before=2*sleep(10)->crash"]
    }
    with pytest.raises(OptionError, match=r"is not COMPONENT=\.\.\., such as x"):
        parse_assignments("--failpoints", ["scheduler"], "x")


def test_nodes_are_shared_out_without_gap_or_overlap() -> None:
    spec = build(options(nodes=10, kubelets=3)).spec
    kubelets = [list(p.argv) for p in spec.processes if p.component == "kubelet"]
    shares = [(int(value(argv, "--first-node")), int(value(argv, "--nodes"))) for argv in kubelets]
    assert shares == [(0, 4), (4, 3), (7, 3)]
    assert [p.name for p in spec.processes][-3:] == ["kubelet-0", "kubelet-1", "kubelet-2"]


def test_what_is_set_closest_wins() -> None:
    chosen = options(
        kubelets=2,
        versions={ALL: "1.36", "kubelet": "1.35", "kubelet-1": "1.34"},
        gates={
            ALL: {"NominatedNodeNameForExpectation": True},
            "scheduler": {"NominatedNodeNameForExpectation": False, "SchedulerAsyncPreemption": False},
        },
        failpoints={"scheduler": ["a=off", "b=crash"]},
        arguments={"kubelet": ["--start-delay=1s"], "kubelet-1": ["--stop-delay=2s"]},
    )
    assert value(command(chosen, "scheduler"), "--emulated-version") == "1.36"
    assert value(command(chosen, "kubelet-0"), "--emulated-version") == "1.35"
    assert value(command(chosen, "kubelet-1"), "--emulated-version") == "1.34"
    assert command(chosen, "kubelet-1")[-2:] == ["--start-delay=1s", "--stop-delay=2s"]
    scheduler = next(p for p in build(chosen).spec.processes if p.name == "scheduler")
    assert scheduler.first_start == ("--failpoints", "a=off;b=crash")
    assert "--failpoints" not in scheduler.argv  # what crashed must come back without it
    assert value(command(chosen, "scheduler"), "--feature-gates") == (
        "NominatedNodeNameForExpectation=false,SchedulerAsyncPreemption=false"
    )
    assert "--emulated-version" not in command(chosen, "etcd")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": -1}, "--nodes: -1 is not between 0"),
        ({"kubelets": 0}, "--kubelets: 0 is not between 1"),
        ({"ready_seconds_max": float("nan")}, "--timeout: nan is not a number of seconds"),
        ({"ready_seconds_max": 0.0}, "--timeout: 0 is not a number of seconds"),
        ({"components": ("apiserver",)}, "needs etcd; add it .or give --etcd-servers"),
        ({"components": ("etcd", "scheduler")}, "scheduler needs apiserver"),
        ({"etcd_servers": "http://x:2379"}, "--components contains etcd"),
        ({"etcd_servers": "unix://x:2379"}, "--etcd-servers: unix://x:2379: etcd is asked over http"),
        ({"etcd_servers": "x"}, "--etcd-servers: x: write HOST:PORT or http://HOST:PORT"),
        ({"versions": {"kubelet-1": "1.36"}}, "--emulated-version: kubelet-1 is not among the processes"),
        ({"components": ("etcd", "apiserver"), "scheduler_config": Path("x")}, "needs the scheduler"),
        ({"node_groups": Path("x")}, "--node-groups: node groups need the cloud"),
        ({"gates": {"scheduler": {"Nonsense": True}}}, "scheduler: unrecognized feature gate"),
    ],
)  # fmt: skip
def test_plans_that_cannot_be(changes: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build(options(**changes))


@pytest.mark.parametrize(
    ("versions", "warned"),
    [
        ({"scheduler": "1.36", "apiserver": "1.37"}, []),
        ({"scheduler": "1.35"}, ["scheduler"]),
        ({"scheduler": "1.37", ALL: "1.36"}, ["scheduler"]),
        ({"kubelet": "1.34"}, []),
        ({"kubelet": "1.33"}, ["kubelet"]),
    ],
)
def test_skew_outside_the_policy_is_a_warning_not_an_error(
    versions: dict[str, str], warned: list[str]
) -> None:
    assert [warning.split()[0] for warning in build(options(versions=versions)).warnings] == warned


def test_without_controllers_nodes_are_not_left_tainted_and_pods_need_no_account() -> None:
    plan = build(options(components=("etcd", "apiserver", "scheduler")))
    argv = next(list(p.argv) for p in plan.spec.processes if p.name == "apiserver")
    assert value(argv, "--disable-admission-plugins") == "TaintNodesByCondition,ServiceAccount"
    assert any("TaintNodesByCondition and ServiceAccount" in warning for warning in plan.warnings)


def test_with_controllers_no_admission_plugin_is_disabled() -> None:
    plan = build(options(components=("etcd", "apiserver", "controllers")))
    argv = next(list(p.argv) for p in plan.spec.processes if p.name == "apiserver")
    assert "--disable-admission-plugins" not in argv


def test_etcd_is_stopped_last_and_the_autoscaler_first() -> None:
    components = ("etcd", "apiserver", "scheduler", "controllers", "cloud", "kubelet", "autoscaler")
    stages = {p.name: p.stop_stage for p in build(options(components=components)).spec.processes}
    assert (
        stages["autoscaler"]
        < stages["scheduler"]
        == stages["kubelet-0"]
        < stages["apiserver"]
        < stages["etcd"]
    )


def test_config_file(tmp_path: Path) -> None:
    (tmp_path / "scheduler.yaml").write_text("kind: KubeSchedulerConfiguration\n")
    path = tmp_path / "cluster.yaml"
    path.write_text(
        """
components: [etcd, apiserver, kube-scheduler]
nodes: 7
emulatedVersion: {scheduler: "1.36"}
featureGates: {scheduler: {NominatedNodeNameForExpectation: false}}
failpoints: {scheduler: "scheduler.bind.before=crash"}
args: {apiserver: ["--event-ttl=1h"]}
schedulerConfig: scheduler.yaml
restart: never
timeout: 5
"""
    )
    assert read_config(path) == {
        "components": ("etcd", "apiserver", "scheduler"),
        "nodes": 7,
        "versions": {"scheduler": "1.36"},
        "gates": {"scheduler": {"NominatedNodeNameForExpectation": False}},
        "failpoints": {"scheduler": ["scheduler.bind.before=crash"]},
        "arguments": {"apiserver": ["--event-ttl=1h"]},
        "scheduler_config": tmp_path / "scheduler.yaml",
        "restart": False,
        "ready_seconds_max": 5.0,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nods: 3", "unknown key 'nods'; known are components, nodes"),
        ("3: 3", "unknown key 3; known are"),
        ("nodes: many", "nodes: 'many' is not a number of nodes; write for example `nodes: 10`"),
        ("nodes: -1", "nodes: -1 is not a number of nodes"),
        ("kubelets: true", "kubelets: True is not a number of processes"),
        ("components: 3", "components: 3 is not a list of components"),
        ("components: {a: b}", "components: {'a': 'b'} is not a list of components"),
        ("components: [1]", r"components: \[1\] is not a list of components"),
        ("emulatedVersion: [1.36]", "emulatedVersion: .* is not a version, or versions by component"),
        ("featureGates: {scheduler: true}", "featureGates: .* is not true or false by component and gate"),
        ("featureGates: {scheduler: {G: maybe}}", "featureGates: 'scheduler=G=maybe' is not COMPONENT=Gate"),
        ("args: {kubelet: 3}", "args: .* is not a list of texts by component; write for example `args: {k"),
        ("args: [--a]", "args: .* is not a list of texts by component"),
        ("args: {kubelt: --a}", "args: .*kubelt"),
        ("failpoints: {scheduler: {a: b}}", "failpoints: .* is not a list of texts by component"),
        ("schedulerConfig: 3", "schedulerConfig: 3 is not the path of a file"),
        ("etcdServers: [a]", r"etcdServers: \['a'\] is not a text with addresses"),
        ("authorizationMode: 3", "authorizationMode: 3 is not a text with modes"),
        ("insecure: maybe", "insecure: 'maybe' is not true or false; write for example `insecure: true`"),
        ("restart: 1", "restart: 1 is not always or never"),
        ("timeout: soon", "timeout: 'soon' is not a number of seconds up to a day"),
        ("timeout: .nan", "timeout: nan is not a number of seconds"),
        ("timeout: true", "timeout: True is not a number of seconds"),
        ("emulatedVersion: {scheduler: 1.12}", "emulatedVersion: .*not between"),
        ("schedulerConfig: none.yaml", "schedulerConfig: there is no file"),
        ("[1, 2]", "is not a mapping"),
        ("a: [", "cannot be read"),
    ],
)
def test_config_files_that_cannot_be(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    with pytest.raises(OptionError, match=message):
        read_config(path)


def test_components_that_act_start_after_an_import_kubelets_first(tmp_path: Path) -> None:
    components = ("etcd", "apiserver", "scheduler", "controllers", "cloud", "kubelet", "autoscaler")
    chosen = options(
        components=components, nodes=0, kubelets=2, adopts_nodes=True, imports=(tmp_path / "a.json",)
    )
    spec = build(chosen).spec
    assert spec.later == (("kubelet-0", "kubelet-1"), ("scheduler", "controllers", "autoscaler"))
    assert spec.first[-4:] == ("import", "--dir", str(chosen.directory), str(tmp_path / "a.json"))
    assert [command(chosen, f"kubelet-{index}")[-1] for index in (0, 1)] == ["0/2", "1/2"]
    assert type(spec).from_json(spec.to_json()) == spec
    found = tokens(spec.processes)["kubelet-1"]
    assert found.groups == ("system:nodes", "nominee:nodes:*")
    with pytest.raises(OptionError, match="--from: objects are imported into an API server"):
        build(options(components=("etcd",), imports=(tmp_path,)))
