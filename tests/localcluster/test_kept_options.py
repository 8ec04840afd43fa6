"""The options that a state directory continues with, and the warnings that it has seen."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from nominee.localcluster.etcd import server as etcd
from nominee.localcluster.up_options.config_file import document_of, settings_of
from nominee.localcluster.up_options.kept_options import KeptOptions
from nominee.localcluster.up_options.options import OptionError
from tests.nominee.test_cli import nominee

EVERY_OPTION: Mapping[str, Any] = {
    "components": ["etcd", "apiserver", "scheduler", "controllers", "kubelet"],
    "nodes": 10,
    "kubelets": 2,
    "replicas": {"scheduler": 2, "etcd": 3},
    "emulatedVersion": {"": "1.36", "kubelet": "1.35"},
    "featureGates": {"": {"GateA": True}, "scheduler": {"GateB": False}},
    "args": {"kubelet": ["--start-delay=1s"]},
    "stopped": ["scheduler-1"],
    "programs": {"descheduler": ["descheduler", "--v=2"]},
    "etcdServers": "http://127.0.0.1:2379",
    "insecure": True,
    "authorizationMode": "Node,RBAC",
    "history": True,
    "dashboard": True,
    "restart": "never",
}


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "cluster"
    nominee("down", "--kill", directory=tmp_path / "cluster")


def test_a_written_document_reads_as_the_same_settings(tmp_path: Path) -> None:
    files = {"schedulerConfig": str(tmp_path / "a.yaml"), "nodeGroups": str(tmp_path / "b.yaml")}
    for path in files.values():
        Path(path).touch()
    document = json.loads(json.dumps({**EVERY_OPTION, **files}))
    settings = settings_of(document, tmp_path / "up.json")
    assert document_of(settings) == document
    KeptOptions({}, document).write(tmp_path)
    assert KeptOptions.read(tmp_path).settings(tmp_path, {})["gates"] == settings["gates"]


@pytest.mark.parametrize(
    ("before", "config", "command_line", "nodes", "gates", "continued"),
    [
        # nothing is given again
        (({}, {"nodes": 10}), None, {}, 10, {}, "nodes: 10"),
        (({"nodes": 10}, {}), None, {}, 10, {}, "nodes: 10"),
        # an option again
        (({}, {"nodes": 10}), None, {"nodes": 3}, 3, {}, ""),
        (({"nodes": 10}, {}), None, {"nodes": 3}, 3, {}, ""),
        # a file replaces the earlier file as a whole, and of the command line what it has
        (({"nodes": 10, "insecure": True}, {}), {"kubelets": 2}, {}, 3, {}, ""),
        (({}, {"nodes": 10, "insecure": True}), {"nodes": 5}, {}, 5, {}, "insecure: true"),
        # gates of the file and of the command line are merged, each as it was given last
        (
            ({"featureGates": {"scheduler": {"A": True}}}, {"featureGates": {"": {"B": True}}}),
            None,
            {"featureGates": {"": {"C": True}}},
            3,
            {"scheduler": {"A": True}, "": {"C": True}},
            "",
        ),
        (
            ({}, {"featureGates": {"": {"B": True}}, "components": ["etcd"]}),
            None,
            {},
            3,
            {"": {"B": True}},
            "featureGates: {{B: true}}, components: [etcd]",
        ),
    ],
)
def test_what_is_given_now_overrides(
    before: tuple[dict[str, Any], dict[str, Any]],
    config: dict[str, Any] | None,
    command_line: dict[str, Any],
    nodes: int,
    gates: Mapping[str, Mapping[str, bool]],
    continued: str,
    tmp_path: Path,
) -> None:
    kept = KeptOptions(*before)
    assert kept.continued(config, command_line) == continued
    after = kept.override(config, command_line)
    settings = after.settings(tmp_path, settings_of(command_line, tmp_path / "up.json"))
    assert settings.get("nodes", 3) == nodes
    assert settings["gates"] == gates
    after.write(tmp_path)
    assert KeptOptions.read(tmp_path) == after


def test_an_empty_text_unsets_an_option(tmp_path: Path) -> None:
    kept = KeptOptions({"etcdServers": "http://127.0.0.1:1"}, {"authorizationMode": "RBAC"})
    after = kept.override(None, {"etcdServers": "", "authorizationMode": ""})
    settings = after.settings(tmp_path, {"etcd_servers": "", "authorization_mode": ""})
    assert (settings["etcd_servers"], settings["authorization_mode"]) == ("", "")
    again = after.settings(tmp_path, {})
    assert not {"etcd_servers", "authorization_mode"} & again.keys()


def test_what_holds_for_one_start_is_not_kept(tmp_path: Path) -> None:
    once = {"failpoints": {"scheduler": ["scheduler.bind.before=crash"]}, "timeout": 5.0}
    KeptOptions({**once, "nodes": 4}, once).write(tmp_path)
    assert KeptOptions.read(tmp_path) == KeptOptions({"nodes": 4}, {})


@pytest.mark.parametrize("text", ["nonsense", "[]", '{"config": 1, "commandLine": {}, "warnings": []}'])
def test_a_damaged_file_is_an_error_that_names_it(text: str, tmp_path: Path) -> None:
    (tmp_path / "up.json").write_text(text)
    with pytest.raises(OptionError, match=r"up.json cannot be read .* remove it"):
        KeptOptions.read(tmp_path)


def test_a_directory_that_cannot_be_has_no_options(tmp_path: Path) -> None:
    """`nominee up` then says that it cannot use the directory."""
    (tmp_path / "file").touch()
    assert KeptOptions.read(tmp_path / "file" / "d") == KeptOptions()


def test_a_file_that_is_gone_is_named_unless_another_is_given(tmp_path: Path) -> None:
    kept = KeptOptions({}, {"schedulerConfig": str(tmp_path / "none.yaml")})
    with pytest.raises(OptionError, match=r"there is no file .*none.yaml.* give this option"):
        kept.settings(tmp_path, {})
    other = tmp_path / "other.yaml"
    assert kept.settings(tmp_path, {"scheduler_config": other})["scheduler_config"] == other


@pytest.mark.slow
def test_up_continues_with_the_options_of_the_directory(directory: Path) -> None:
    first = nominee("up", "--detach", "--components", "etcd", "--nodes", "10", directory=directory)
    assert first.returncode == 0, first.stderr
    assert "continue" not in first.stderr
    nominee("down", directory=directory)

    more = ("--dry-run", "--components", "etcd,apiserver,kubelet")
    again = nominee("up", *more, directory=directory)
    assert f"options of the last start in {directory} continue: nodes: 10\n" in again.stderr
    assert "--nodes 10 --first-node 0" in again.stdout
    other = nominee("up", *more, "--nodes", "3", directory=directory)
    assert "continue" not in other.stderr
    assert "--nodes 3 --first-node 0" in other.stdout
    new = nominee("up", *more, "--no-remember", directory=directory)
    assert "--nodes 3 --first-node 0" in new.stdout

    second = nominee("up", "--detach", "-o", "json", directory=directory)
    assert [each["name"] for each in json.loads(second.stdout)["components"]] == ["etcd"]
    assert "continue: components: [etcd], nodes: 10" in second.stderr


@pytest.mark.slow
def test_the_warning_about_etcd_comes_once_for_a_directory(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The etcd runs, and reports the version of one that may lose writes."""
    script = tmp_path / "etcd"
    script.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo etcd Version: 3.5.1 || exec {etcd.find().path} "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("NOMINEE_ETCD", str(script))
    directory.mkdir()  # a new one would be removed with what it remembers
    rejected = nominee("up", "--components", "etcd", "--arg", "etcd=--nonsense", directory=directory)
    assert (rejected.returncode, rejected.stderr.count("may lose a committed write")) == (1, 1)
    first = nominee("up", "--detach", "--components", "etcd", directory=directory)
    assert first.returncode == 0, first.stderr
    assert "may lose" not in first.stderr
    assert "nonsense" not in first.stderr
    status = json.loads(nominee("status", "-o", "json", directory=directory).stdout)
    assert f"etcd 3.5.1 ({script}) may lose a committed write" in status["components"][0]["warning"]
    nominee("down", directory=directory)
    second = nominee("up", "--detach", directory=directory)
    assert second.returncode == 0, second.stderr
    assert "may lose" not in second.stderr
