"""Runs of containers that have ended: which ones, and why. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.kubelet.runtime.sandbox import Container, PodSandbox


def termination_reason(exit_code: int) -> str:
    """Return the reason of a container's terminated state."""
    return "Completed" if exit_code == 0 else "Error"


def terminations(old: PodSandbox, new: PodSandbox) -> Iterator[tuple[str, int]]:
    """Return (type of the container, exit code) of each run that ended between two states of a pod.

    Source: kubelet 1.36, the labels of kubelet_terminated_containers_total.
    """
    for before, after in zip(old.containers, new.containers, strict=True):
        code = _ended(before, after)
        if code is not None:
            yield "init_container" if after.init else "container", code
    known = {container.name: container for container in old.ephemeral}
    for after in new.ephemeral:
        code = _ended(known.get(after.name, Container(name=after.name)), after)
        if code is not None:
            yield "ephemeral_container", code


def _ended(before: Container, after: Container) -> int | None:
    """Return the exit code of the run that ended, None where none did."""
    if after.last_id != before.last_id:
        return after.last_exit_code
    if after.state == "exited" and before.state != "exited" and not before.crashed:
        return after.exit_code
    return None
