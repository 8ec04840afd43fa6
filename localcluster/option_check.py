"""Check the options and files of `nominee up` with the components' own programs, before any of them starts.

`nominee.localcluster.plan` checks what it can without I/O (gates, versions, names). The components check the
rest, as they do for `nominee restart`. A component without options of the user's needs no check.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nominee.localcluster import declared_failpoints as declared
from nominee.localcluster.components import BY_NAME
from nominee.localcluster.plan import ClusterPlan, UpOptions
from nominee.localcluster.supervisor.clock import monotonic, wait_until
from nominee.localcluster.supervisor.model.spec import ProcessSpec
from nominee.localcluster.supervisor.one_shot import CHECK_OPTION, CHECK_SECONDS_MAX, OneShot, Outcome
from nominee.localcluster.up_options.options import OptionError


class RejectedError(ValueError):
    """A component rejects its options; the message has its name and its error."""


def check_failpoints(options: UpOptions) -> None:
    """Check names and actions of --failpoints.

    Those of a scheduler with plugins of the user's are left to it: a plugin may declare its own.

    Raises:
        OptionError: there is no such failpoint or action.
    """
    if not options.failpoints:
        return
    # For --failpoints only.
    from nominee.machinery.runtime import failpoints

    for key, texts in options.failpoints.items():
        component = BY_NAME.get(key) or BY_NAME[key.rpartition("-")[0]]
        given = [text for name in (component.name, key) for text in options.arguments.get(name, ())]
        known = declared.failpoints(component)
        try:
            for name in failpoints.parse_list(";".join(texts)):
                if name not in known and not any(text.startswith("--plugin") for text in given):
                    hint = f"see `nominee failpoint {component.name}`"
                    raise OptionError("--failpoints", f"{key}: there is no failpoint {name}; {hint}")
        except failpoints.ActionError as error:
            raise OptionError("--failpoints", f"{key}: {error}") from None


def check_options(options: UpOptions, plan: ClusterPlan) -> None:
    """Let the components check the options that the user gave them, all at once.

    Call it from the main thread of a process that has not used gRPC: it starts processes.

    Raises:
        RejectedError: a component rejects its options.
    """
    environment = plan.spec.environment
    checks = []
    for process in _to_check(options, plan):
        argv = (*process.argv, *process.first_start, CHECK_OPTION)
        checks.append((process, OneShot(argv, environment, monotonic, seconds_max=CHECK_SECONDS_MAX)))
    outcomes: dict[str, Outcome] = {}

    def all_done() -> bool:
        for process, check in checks:
            if process.name not in outcomes and (outcome := check.poll()) is not None:
                outcomes[process.name] = outcome
        return len(outcomes) == len(checks)

    try:
        wait_until(all_done, 2 * CHECK_SECONDS_MAX)  # every check has its own limit
    finally:
        for process, check in checks:
            if process.name not in outcomes:
                check.kill()
    for process, _ in checks:
        if not outcomes[process.name].ok:
            raise RejectedError(rejection(process.name, outcomes[process.name].output))


def rejection(name: str, output: str) -> str:
    """Return the error message about a component that rejects its options."""
    # A component reports wrong options as click does: its usage, and then the error.
    _, mark, message = output.rpartition("Error: ")
    return f"{name}: {message}" if mark else f"{name} rejects these options:\n{output}"


def _to_check(options: UpOptions, plan: ClusterPlan) -> Iterator[ProcessSpec]:
    """Yield the processes with options of the user's; of equal replicas the first."""
    checked = set()
    for process in plan.spec.processes:
        key = process.component if process.name not in options.arguments else process.name
        if _has_own_options(options, process) and key not in checked:
            checked.add(key)
            yield process


def _has_own_options(options: UpOptions, process: ProcessSpec) -> bool:
    if process.name in options.arguments or process.component in options.arguments:
        return True
    return {
        "etcd": _has_data(options.directory),
        "apiserver": bool(options.authorization_mode),
        "scheduler": options.scheduler_config is not None,
        "cloud": options.node_groups is not None,
    }.get(process.component, False)


def _has_data(directory: Path) -> bool:
    """Return whether an etcd used this directory; it may have had other members, or a newer version."""
    return (directory / "etcd").is_dir()
