"""Sysctls of pods: which ones a node admits, and which `--allowed-unsafe-sysctls` it can be started with."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from nominee.kubelet.__main__ import main
from nominee.kubelet.node.state import NodeSettings
from nominee.kubelet.node.sysctls import SysctlAllowlist
from nominee.kubelet.shell.metrics import rejection_label
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Version
from tests.kubelet.executor import Executor, container, new_pod, node_object

_VERSION = Version(1, 36)


def _pod(*sysctls: str, **spec: Any) -> core.Pod:
    made = new_pod("a", container("c"), **spec)
    made.spec.securityContext.sysctls.extend(core.Sysctl(name=name, value="1") for name in sysctls)
    return made


@pytest.mark.parametrize(
    ("pod", "unsafe", "message"),
    [
        (_pod("kernel.shm_rmid_forced", "net.ipv4.tcp_wmem"), (), ""),
        (_pod("net/ipv4/tcp_wmem"), (), ""),
        (_pod("kernel.shm_rmid_forced", "kernel/msgmax"), (),
         'forbidden sysctl: "kernel.msgmax" not allowlisted'),
        (_pod("fs.mount-max"), ("kernel.msg*",), 'forbidden sysctl: "fs.mount-max" not allowlisted'),
        (_pod("net.ipv4.tcp_notsent_lowat"), (),
         'forbidden sysctl: "net.ipv4.tcp_notsent_lowat" not allowlisted'),
        (_pod("kernel.msgmax", "net.core.somaxconn"), ("kernel.msg*", "net/core/somaxconn"), ""),
        (_pod("net.ipv4.tcp_wmem", hostNetwork=True), (),
         'forbidden sysctl: "net.ipv4.tcp_wmem" not allowed with host net enabled'),
        (_pod("kernel.msgmax", hostIPC=True), ("kernel.msg*",),
         'forbidden sysctl: "kernel.msgmax" not allowed with host ipc enabled'),
        (_pod("kernel.shm_rmid_forced", hostNetwork=True), (), ""),
    ],
)  # fmt: skip
def test_a_pod_with_a_forbidden_sysctl_is_rejected(
    pod: core.Pod, unsafe: tuple[str, ...], message: str
) -> None:
    settings = NodeSettings(sysctls=SysctlAllowlist.of(_VERSION, unsafe))
    here = Executor(node_object(cpu="4", memory="8Gi", pods="10"), settings)
    here.list_pods()
    here.store(pod)
    here.observe("a")
    here.work()
    status = here.api["a"].status
    if message:
        assert (status.phase, status.reason) == ("Failed", "SysctlForbidden")
        assert status.message == f"Pod was rejected: {message}"
    else:
        assert status.phase == "Running"


def test_a_newer_kubelet_has_more_safe_sysctls() -> None:
    pod = _pod("net.ipv4.tcp_notsent_lowat")
    assert SysctlAllowlist.of(_VERSION).problem(pod)
    assert not SysctlAllowlist.of(Version(1, 37)).problem(pod)


def test_the_rejection_has_a_label_of_its_own_in_the_metric() -> None:
    assert rejection_label("SysctlForbidden") == "SysctlForbidden"


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("vm.swappiness", 'the sysctl "vm.swappiness" are not known to be namespaced'),
        ("kernel.msg*,vm.*", 'the sysctls "vm.*" are not known to be namespaced'),
        ("Net", 'sysctl "Net" must have at most 253 characters and match regex'),
    ],
)
def test_a_sysctl_without_a_namespace_cannot_be_allowed(option: str, problem: str, tmp_path: Any) -> None:
    arguments = ["--dir", str(tmp_path), "--allowed-unsafe-sysctls", option]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert problem in result.output
