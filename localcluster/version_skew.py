"""Kubernetes' version skew policy, for the processes of one cluster."""

from __future__ import annotations

from collections.abc import Mapping

from nominee.machinery.features import gates as versions


def problems(emulated: Mapping[str, tuple[str, versions.Version]]) -> list[str]:
    """Return pairs of versions that the policy does not cover; they run nevertheless.

    `emulated` has the component and the version of each process.
    """
    servers = {version for component, version in emulated.values() if component == "apiserver"}
    found = [
        versions.skew_problem(component, version, server)
        for component, version in emulated.values()
        for server in sorted(servers)
    ]
    if servers and max(servers).minor - min(servers).minor > 1:
        found.append(f"API servers {min(servers)} and {max(servers)} are more than one minor version apart")
    return [f"{problem}: upstream does not support this pair" for problem in dict.fromkeys(found) if problem]
