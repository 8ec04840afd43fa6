"""Names of sysctls, and the kernel namespaces that they belong to.

Source: Kubernetes 1.36, component-helpers/node/util/sysctl.
"""

from __future__ import annotations

from typing import Final, Literal

Namespace = Literal["ipc", "net", ""]

_SWAPPED: Final = str.maketrans("./", "/.")


def with_dots(name: str) -> str:
    """Return a sysctl's name with dots between its parts; the first separator says which one it has."""
    first = min((place for place in (name.find("."), name.find("/")) if place >= 0), default=-1)
    return name if first < 0 or name[first] == "." else name.translate(_SWAPPED)


def namespace_of(name: str) -> Namespace:
    """Return the namespace of a sysctl, or of a prefix of sysctls, with dots; "" if none is known."""
    if name == "kernel.sem" or name.startswith(("kernel.shm", "kernel.msg", "fs.mqueue.")):
        return "ipc"
    return "net" if name.startswith("net.") else ""
