"""The components of a cluster, as a table: one row each.

Names and upstream's aliases are those of docs/design/001-contracts.md, "Component names".
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One kind of process.

    `stop_stage`: processes of lower stages stop first, those of one stage together. `versioned`
    components take --emulated-version and --feature-gates. `ready_path` is the health check. `needs`
    names the components that must be in the cluster, too. Of one with `replicas_max` above 1 a cluster may
    have several processes, `name-0`, `name-1`, ...
    """

    name: str
    module: str
    aliases: tuple[str, ...] = ()
    stop_stage: int
    versioned: bool = True
    ready_path: str = "/readyz"
    needs: tuple[str, ...] = field(default=())
    replicas_max: int = 1


COMPONENTS: tuple[Component, ...] = (
    Component(
        name="etcd", module="nominee.localcluster.etcd", stop_stage=3, versioned=False, ready_path="/health",
        replicas_max=5,
    ),
    Component(
        name="apiserver", module="nominee.apiserver", aliases=("kube-apiserver",), stop_stage=2,
        needs=("etcd",), replicas_max=3,
    ),
    Component(
        name="scheduler", module="nominee.scheduler", aliases=("kube-scheduler",), stop_stage=1,
        needs=("apiserver",), replicas_max=3,
    ),
    Component(
        name="controllers", module="nominee.controllers", aliases=("kube-controller-manager",), stop_stage=1,
        needs=("apiserver",),
    ),
    Component(name="cloud", module="nominee.autoscaler.cloud", stop_stage=1, versioned=False),
    Component(name="kubelet", module="nominee.kubelet", stop_stage=1, needs=("apiserver",)),
    Component(
        name="autoscaler", module="nominee.autoscaler", aliases=("cluster-autoscaler",), stop_stage=0,
        needs=("apiserver", "cloud"), replicas_max=3,
    ),
)  # fmt: skip

BY_NAME = {component.name: component for component in COMPONENTS}
_BY_ALIAS = {alias: component for component in COMPONENTS for alias in (component.name, *component.aliases)}


class UnknownComponentError(ValueError):
    """A name that is not a component; the message lists the components."""

    def __init__(self, name: str) -> None:
        super().__init__(f"unknown component {name!r}; known are {', '.join(BY_NAME)}")


def find(name: str) -> Component:
    """Return the component with this name or upstream name.

    Raises:
        UnknownComponentError: there is no such component.
    """
    try:
        return _BY_ALIAS[name.strip()]
    except KeyError:
        raise UnknownComponentError(name) from None


def find_process(name: str) -> tuple[Component, str]:
    """Return the component and the process name for a name such as `kubelet-1` or `kube-scheduler`.

    The process name is "" if the name stands for every process of the component (`kubelet`). A component
    with one process has its name; with several, it stands for all of them.

    Raises:
        UnknownComponentError: there is no such component.
    """
    name = name.strip()
    base, dash, index = name.rpartition("-")
    if dash and index.isdigit() and base in _BY_ALIAS and _is_numbered(_BY_ALIAS[base]):
        return _BY_ALIAS[base], f"{_BY_ALIAS[base].name}-{int(index)}"
    component = find(name)
    return component, "" if component.name == "kubelet" else component.name


def _is_numbered(component: Component) -> bool:
    return component.name == "kubelet" or component.replicas_max > 1


def is_installed(component: Component) -> bool:
    """Return whether the component's program is installed (a package without `__main__` cannot run)."""
    try:
        spec = importlib.util.find_spec(component.module)
        if spec is None:
            return False
        if spec.submodule_search_locations is None:
            return True
        return importlib.util.find_spec(f"{component.module}.__main__") is not None
    except ModuleNotFoundError:
        return False
