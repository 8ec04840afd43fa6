"""Kubernetes' version skew policy: which versions of components upstream supports beside an API server.

Source: kubernetes.io/releases/version-skew-policy. Other pairs run too, that is what the emulation is for,
but a person should know.
"""

from __future__ import annotations

from collections.abc import Mapping

from nominee.components import Component


def minor(version: str) -> int:
    """The 36 of 1.36."""
    return int(version.partition(".")[2])


def warnings(versions: Mapping[str, tuple[Component, str]]) -> list[str]:
    """What upstream does not support among the processes (name to component and version), in words."""
    server = next(
        (version for component, version in versions.values() if component.name == "apiserver"), None
    )
    if server is None:
        return []
    found = []
    for name, (component, version) in versions.items():
        if component.skew is None:
            continue
        older = minor(server) - minor(version)
        if older < 0:
            found.append(
                f"{name} {version} is newer than the API server ({server}); Kubernetes does not support that"
            )
        elif older > component.skew:
            found.append(
                f"{name} {version} is {older} minor versions older than the API server ({server}); "
                f"Kubernetes supports at most {component.skew}"
            )
    return found
