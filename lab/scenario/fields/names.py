"""Checks of names in a scenario that need no cluster: components, kinds, gates, versions, failpoints."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches

from nominee.lab.history.invariants.table import CHECKERS
from nominee.localcluster import declared_failpoints as declared
from nominee.localcluster.components import BY_NAME, Component, UnknownComponentError, find_process
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.selectors import LabelSelector, SelectorError
from nominee.machinery.features import gates as features
from nominee.machinery.runtime.failpoints import ActionError, parse
from nominee.machinery.runtime.faults import action_chain, call_faults

_NEAR_MAX = 3


class NameProblem(ValueError):
    """A name that does not exist; the message has near ones."""


def near(name: str, known: Sequence[str]) -> str:
    """Return `; did you mean X?`, or the known names if no name is near."""
    found = get_close_matches(name, known, n=_NEAR_MAX)
    if found:
        return f"; did you mean {' or '.join(found)}?"
    return f"; known are {', '.join(known)}" if known else ""


def process(text: str, *, also: Collection[str] = ()) -> tuple[Component, str]:
    """Return the component and the name of its process for `kubelet-1`, `kube-scheduler`, `kubelet`.

    Raises:
        NameProblem: there is no such component.
    """
    try:
        component, name = find_process(text)
    except UnknownComponentError:
        raise NameProblem(f"unknown component {text!r}{near(text, (*BY_NAME, *also))}") from None
    return component, name or component.name


def kind(text: str) -> AnyKind:
    """Return a kind by a name such as Pod, pods or po.

    Raises:
        NameProblem: there is no such kind.
    """
    found = next(kinds.by_name(text), None)
    if found is None:
        known = tuple(dict.fromkeys(name for each in kinds.KINDS for name in (each.kind, each.plural)))
        raise NameProblem(f"unknown kind {text!r}{near(text, known)}")
    return found


def selector(text: str) -> None:
    """Check a label selector.

    Raises:
        NameProblem: it is something else.
    """
    try:
        LabelSelector.parse(text)
    except SelectorError as error:
        raise NameProblem(f"{text!r} is not a label selector: {error}") from None


def version(text: str) -> features.Version:
    """Return an emulated version; the default for "".

    Raises:
        NameProblem: it cannot be emulated.
    """
    try:
        return features.parse_emulated_version(text) if text else features.DEFAULT
    except ValueError as error:
        raise NameProblem(str(error)) from None


def gate_names() -> tuple[str, ...]:
    """Return the names of all feature gates, and of their stages."""
    return (*features.gates(), *features.aliases(), "AllAlpha", "AllBeta")


def gate(name: str) -> None:
    """Check that a feature gate exists in some version.

    Raises:
        NameProblem: it does not.
    """
    known = gate_names()
    if name not in known:
        raise NameProblem(f"unknown feature gate {name!r}{near(name, known)}")


def gate_of(component: str, name: str) -> None:
    """Check that a feature gate exists in some version, and is one that a component reads.

    Raises:
        NameProblem: it is not.
    """
    gate(name)
    found = features.gates().get(features.aliases().get(name, name))
    if found is not None and component not in found.components:
        raise NameProblem(
            f"{name} is not a gate of {component}, but of {', '.join(sorted(found.components))}"
        )


def failpoint(component: Component, name: str, action: str = "") -> None:
    """Check a failpoint's name and action.

    Raises:
        NameProblem: the component has no such failpoint, or the action cannot be read.
    """
    known: Sequence[str] = declared.failpoints(component)
    if name not in known:
        raise NameProblem(f"{component.name} has no failpoint {name!r}{near(name, known)}")
    if action:
        try:
            parse(action)
        except ActionError as error:
            raise NameProblem(str(error)) from None


def fault_action(action: str) -> None:
    """Check the action of a fault.

    Raises:
        NameProblem: it cannot be read.
    """
    try:
        action_chain.parse(action, call_faults.ACTIONS)
    except ActionError as error:
        raise NameProblem(str(error)) from None


def invariant(name: str) -> None:
    """Check that an invariant exists.

    Raises:
        NameProblem: it does not.
    """
    known = tuple(checker.about.name for checker in CHECKERS)
    if name not in known:
        raise NameProblem(f"unknown invariant {name!r}{near(name, known)}")
