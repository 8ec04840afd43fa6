"""Options and files of `nominee up` that a component rejects: nothing is started, nothing kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nominee.localcluster.up_options.kept_options import KeptOptions
from tests.nominee.test_cli import nominee

SCHEDULER = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podMaxBackoffSeconds: -3
"""
_HEAD = SCHEDULER.partition("podMax")[0]
ARGUMENT = f"""{_HEAD}
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {{scoringStrategy: {{type: Nonsense}}}}
"""
EXTENDER = f"{_HEAD}extenders: [{{urlPrefix: 'ftp://127.0.0.1', filterVerb: filter}}]"


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "cluster"
    nominee("down", "--kill", directory=tmp_path / "cluster")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "content", "message"),
    [
        (("--scheduler-config", "FILE"), SCHEDULER, "podMaxBackoffSeconds"),
        (("--scheduler-config", "FILE"), ARGUMENT, "pluginConfig args: scoringStrategy.type"),
        (("--scheduler-config", "FILE"), EXTENDER, "must be an http or https URL"),
        (("--config", "FILE"), "schedulerConfig: none.yaml", "there is no file"),
        (("--arg", "scheduler=--plugin=no_such_module:Plugin"), "", "No module named 'no_such_module'"),
        (("--node-groups", "FILE"), "nodeGroups: [{name: small, max: -1}]", "cloud: "),
        (("--arg", "apiserver=--enable-admission-plugins=Nope"), "", "unknown admission plugins: Nope"),
        (("--arg", "apiserver=--token-auth-file=FILE"), "one,column", "must have at least 3 columns"),
        (
            ("--arg", "apiserver=--service-account-signing-key-file=FILE"),
            "no key",
            "the key for service accounts'",
        ),
        (("--authorization-mode", "RBCA"), "", 'authorization-mode "RBCA" is not a valid mode'),
        (("--arg", "autoscaler=--cloud-config=FILE"), "[nonsense", "cloud-config"),
        (("--arg", "kubelet=--start-delay=soon"), "", "kubelet-0: "),
        (("--arg", "controllers=--controllers=nope"), "", '"nope" is not in the list of known controllers'),
        (("--arg", "etcd=--etcd-binary=FILE"), "", "is not an etcd binary"),
        (("--feature-gates", "scheduler=NoSuchGate=true"), "", "NoSuchGate"),
        (
            ("--failpoints", "scheduler=scheduler.nowhere=crash"),
            "",
            "there is no failpoint scheduler.nowhere",
        ),
        (("--failpoints", "scheduler=scheduler.bind.before=explode"), "", "--failpoints: scheduler: "),
    ],
)
def test_a_rejected_option_starts_nothing(
    options: tuple[str, ...], content: str, message: str, directory: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text(content)
    words = [word.replace("FILE", str(tmp_path / "file")) for word in options]
    answer = nominee("up", "--detach", *words, directory=directory)
    assert answer.returncode != 0
    assert message in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not directory.exists()


def test_data_of_another_number_of_members_are_found_before_the_start(directory: Path) -> None:
    (directory / "etcd" / "member-data").mkdir(parents=True)
    up = ("up", "--detach", "--components", "etcd", "--replicas", "etcd=3")
    answer = nominee(*up, directory=directory)
    assert answer.returncode == 1
    assert "are of 1 etcd member, not of 3" in answer.stderr
    assert not (directory / "logs").exists()
    assert replace(KeptOptions.read(directory), warnings=()) == KeptOptions()
