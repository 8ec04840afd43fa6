"""Components with several processes: their plan, their run files, and the addresses of etcd's members."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nominee.localcluster.components import UnknownComponentError, find_process
from nominee.localcluster.credentials import identities
from nominee.localcluster.etcd import members as etcd_members
from nominee.localcluster.plan import UpOptions, build
from nominee.localcluster.up_options.options import OptionError, parse_replicas
from nominee.machinery.process import run_files
from nominee.machinery.process.run_files import RunFile

ALL = ("etcd", "apiserver", "scheduler", "controllers", "cloud", "kubelet", "autoscaler")


def options(tmp_path: Path, replicas: dict[str, int], **more: object) -> UpOptions:
    return UpOptions(directory=tmp_path, components=ALL, replicas=replicas, **more)  # type: ignore[arg-type]


def test_the_processes_of_a_plan(tmp_path: Path) -> None:
    replicas = {"etcd": 3, "apiserver": 2, "scheduler": 2, "autoscaler": 2}
    processes = {p.name: p for p in build(options(tmp_path, replicas)).spec.processes}
    assert list(processes) == [
        *("etcd-0", "etcd-1", "etcd-2", "apiserver-0", "apiserver-1", "scheduler-0", "scheduler-1"),
        *("controllers", "cloud", "kubelet-0", "autoscaler-0", "autoscaler-1"),
    ]
    for name, words in (
        ("etcd-2", "--name etcd-2 --members 3"),
        ("apiserver-1", "--apiserver-count 2"),
        ("scheduler-0", "--leader-elect"),
        ("autoscaler-1", "--leader-elect"),
    ):
        assert set(words.split()) <= set(processes[name].argv), name
    assert "--leader-elect" not in processes["controllers"].argv
    tokens = identities.tokens(list(processes.values()))
    assert tokens["scheduler-1"].user == "system:kube-scheduler"


def test_one_process_keeps_its_name_and_has_no_new_options(tmp_path: Path) -> None:
    assert build(options(tmp_path, {"scheduler": 1})).spec == build(options(tmp_path, {})).spec


def test_versions_and_gates_of_one_process(tmp_path: Path) -> None:
    chosen = options(tmp_path, {"apiserver": 2}, versions={"": "1.36", "apiserver-1": "1.37"})
    plan = build(chosen)
    found = {
        p.name: p.argv[p.argv.index("--emulated-version") + 1]
        for p in plan.spec.processes
        if "--emulated-version" in p.argv
    }
    assert (found["apiserver-0"], found["apiserver-1"], found["scheduler"]) == ("1.36", "1.37", "1.36")
    assert plan.warnings == ()
    apart = build(options(tmp_path, {"apiserver": 2}, versions={"apiserver-0": "1.35"}))
    assert any("API servers 1.35 and 1.37 are more than one minor version apart" in w for w in apart.warnings)


@pytest.mark.parametrize(
    ("replicas", "message"),
    [
        ({"controllers": 2}, "controllers=2: at most 1; only etcd, apiserver, scheduler and autoscaler"),
        ({"scheduler": 9}, "scheduler=9: at most 3"),
        ({"scheduler": 0}, "scheduler=0: at most 3"),
    ],
)
def test_numbers_that_cannot_be(tmp_path: Path, replicas: dict[str, int], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build(options(tmp_path, replicas))


def test_the_option() -> None:
    assert parse_replicas("--replicas", ["kube-scheduler=2,etcd=3", "etcd=5"]) == {"scheduler": 2, "etcd": 5}
    for text, message in (
        ("scheduler", "is not COMPONENT=NUMBER"),
        ("scheduler=two", "is not COMPONENT=NUMBER"),
        ("scheduler-1=2", "scheduler-1 is one process"),
        ("kubelet=2", "use --kubelets"),
        ("sheduler=2", "unknown component"),
    ):
        with pytest.raises(OptionError, match=message):
            parse_replicas("--replicas", [text])


def test_names_of_processes() -> None:
    assert find_process("kube-apiserver-1")[1] == "apiserver-1"
    assert find_process("scheduler")[1] == "scheduler"
    with pytest.raises(UnknownComponentError):
        find_process("controllers-1")


def announce(directory: Path, name: str, pid: int) -> None:
    run_files.write(directory, name, {"name": name, "component": name.partition("-")[0], "pid": pid})


def test_the_run_files_of_a_component(tmp_path: Path) -> None:
    assert RunFile.read(tmp_path, "apiserver") is None
    announce(tmp_path, "apiserver-1", os.getpid())
    announce(tmp_path, "apiserver-2", os.getpid())
    announce(tmp_path, "apiserver-0", 2**22 + 1)  # no process has this pid
    assert [found.name for found in RunFile.of_component(tmp_path, "apiserver")] == [
        "apiserver-1",
        "apiserver-2",
    ]
    found = RunFile.read(tmp_path, "apiserver")
    assert found is not None
    assert found.name == "apiserver-1"
    assert RunFile.read(tmp_path, "apiserver-0") is None
    announce(tmp_path, "apiserver", os.getpid())
    assert [found.name for found in RunFile.of_component(tmp_path, "apiserver")] == ["apiserver"]


def free_addresses(count: int) -> list[str]:
    return [f"127.0.0.1:{os.getpid() % 1000 * 10 + index + 1}" for index in range(count)]


def test_members_that_start_together_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(
                lambda _: etcd_members.agree_on_addresses(tmp_path / "etcd", 3, free_addresses), range(16)
            )
        )
    assert all(each == found[0] for each in found)
    assert list(found[0]) == ["etcd-0", "etcd-1", "etcd-2"]
    assert len({address for at in found[0].values() for address in (at.client, at.peer)}) == 6


def test_data_of_another_number_of_members_is_refused(tmp_path: Path) -> None:
    etcd_members.agree_on_addresses(tmp_path / "three", 3, free_addresses)
    with pytest.raises(
        etcd_members.MembersError, match="are of 3 etcd members, not of 1: use --replicas etcd=3"
    ):
        etcd_members.check(tmp_path / "three", 1)
    (tmp_path / "one" / "member-data").mkdir(parents=True)
    etcd_members.check(tmp_path / "one", 1)
    with pytest.raises(etcd_members.MembersError, match="are of 1 etcd member, not of 3"):
        etcd_members.agree_on_addresses(tmp_path / "one", 3, free_addresses)
