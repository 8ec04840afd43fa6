"""The sysctls that pods of a node may set: the safe ones, and those that its administrator allows. Pure.

Source: kubelet 1.36, pkg/kubelet/sysctl.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nominee.machinery.api.names import go_quote
from nominee.machinery.api.pb import core
from nominee.machinery.api.sysctls import namespace_of, with_dots
from nominee.machinery.features.gates import Version

FORBIDDEN: Final = "SysctlForbidden"
_LENGTH_MAX: Final = 253
_PATTERN: Final = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]"
_SAFE: Final = {
    "kernel.shm_rmid_forced": Version(1, 4),
    "net.ipv4.ip_local_port_range": Version(1, 4),
    "net.ipv4.tcp_syncookies": Version(1, 4),
    "net.ipv4.ping_group_range": Version(1, 18),
    "net.ipv4.ip_unprivileged_port_start": Version(1, 22),
    "net.ipv4.ip_local_reserved_ports": Version(1, 27),
    "net.ipv4.tcp_keepalive_time": Version(1, 29),
    "net.ipv4.tcp_fin_timeout": Version(1, 29),
    "net.ipv4.tcp_keepalive_intvl": Version(1, 29),
    "net.ipv4.tcp_keepalive_probes": Version(1, 29),
    "net.ipv4.tcp_rmem": Version(1, 32),
    "net.ipv4.tcp_wmem": Version(1, 32),
    "net.ipv4.tcp_slow_start_after_idle": Version(1, 37),
    "net.ipv4.tcp_notsent_lowat": Version(1, 37),
}
"""The safe sysctls and the Kubernetes version since which each is safe; the kernel has all of them."""


@dataclass(frozen=True, slots=True)
class SysctlAllowlist:
    """Names of sysctls and prefixes of names, with dots."""

    names: frozenset[str]
    prefixes: tuple[str, ...] = ()

    @classmethod
    def of(cls, version: Version, unsafe: Iterable[str] = ()) -> SysctlAllowlist:
        """Return the allowlist of a version: its safe sysctls, and the unsafe ones that are allowed.

        An unsafe one that ends in `*` is a prefix.

        Raises:
            ValueError: one is no sysctl, or not known to be namespaced.
        """
        names = {name for name, since in _SAFE.items() if version >= since}
        prefixes = []
        for pattern in unsafe:
            if len(pattern) > _LENGTH_MAX or not re.fullmatch(_PATTERN, pattern, re.ASCII):
                limits = f"must have at most {_LENGTH_MAX} characters and match regex {_PATTERN}"
                raise ValueError(f"sysctl {go_quote(pattern)} {limits}")
            name = with_dots(pattern)
            if not namespace_of(name.removesuffix("*")):
                sort = "sysctls" if name.endswith("*") else "sysctl"
                raise ValueError(f"the {sort} {go_quote(name)} are not known to be namespaced")
            if name.endswith("*"):
                prefixes.append(name[:-1])
            else:
                names.add(name)
        return cls(frozenset(names), tuple(prefixes))

    def problem(self, pod: core.Pod) -> str:
        """Return why the pod may not have its sysctls, "" if it may."""
        for sysctl in pod.spec.securityContext.sysctls:
            name = with_dots(sysctl.name)
            if name not in self.names and not name.startswith(self.prefixes):
                return f"forbidden sysctl: {go_quote(name)} not allowlisted"
            namespace = namespace_of(name)
            shared = {"net": pod.spec.hostNetwork, "ipc": pod.spec.hostIPC}
            if shared.get(namespace):
                return f"forbidden sysctl: {go_quote(name)} not allowed with host {namespace} enabled"
        return ""
