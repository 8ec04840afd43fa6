"""Run a program of Nominee with a known bug: `python -m tests.mutations.launch MUTATION -- MODULE ARGS`.

If MODULE is the mutation's component, it is patched before its main runs. If it is another program that
starts processes (`nominee.cli`, `nominee.lab.jobs.child`), the processes that it starts get the mutation,
too.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.mutations.catalogue import BY_NAME as KNOWN
from tests.mutations.catalogue import Mutation
from tests.mutations.patch import Edit, apply
from tests.mutations.unseen.table import UNSEEN

SELF = "tests.mutations.launch"
SUPERVISOR = "nominee.localcluster.supervisor"
BY_NAME = {**KNOWN, **{unseen.mutation.name: unseen.mutation for unseen in UNSEEN}}
ROOT = Path(__file__).resolve().parents[2]
_SIMULATES = "NOMINEE_SIMULATES_MUTATION"
_STARTS_PROCESSES = ("nominee.cli", "nominee.lab.jobs.child")


def main(argv: list[str]) -> None:
    """Patch, and run the module as the main program."""
    if len(argv) < 3 or argv[1] != "--" or argv[0] not in BY_NAME:
        sys.exit(f"usage: {SELF} MUTATION -- MODULE ARGS; mutations: {', '.join(BY_NAME)}")
    module, arguments = argv[2], argv[3:]
    prepare(argv[0], module, arguments)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def prepare(name: str, module: str, arguments: Sequence[str]) -> None:
    """Patch this process, which is to run the module with these arguments.

    In a simulation the components run in this process, or in a job that it starts.

    Raises:
        SystemExit: the program neither has the bug nor starts one that has.
    """
    mutation = BY_NAME[name]
    if "--simulate" in arguments or "generate" in arguments:
        os.environ[_SIMULATES] = name
    simulates = os.environ.get(_SIMULATES) == name
    for edit in (*mutation.edits, _of_jobs(mutation)) if simulates else edits(mutation, module):
        apply(edit)
    # The processes that this one starts have no working directory on their path (`-P`).
    os.environ["PYTHONPATH"] = str(ROOT)


def edits(mutation: Mutation, module: str) -> tuple[Edit, ...]:
    """Return the patches of a program.

    Raises:
        SystemExit: the program neither has the bug nor starts one that has.
    """
    if module == mutation.module:
        return mutation.edits
    if module not in _STARTS_PROCESSES:
        sys.exit(f"{module} does not start {mutation.module}; the mutation would have no effect")
    supervised = Edit(
        "nominee.commands.cluster.up:up.callback",
        f'"{SUPERVISOR}",',
        f'"{SELF}", "{mutation.name}", "--", "{SUPERVISOR}",',
    )
    return (
        *((supervised,) if mutation.module == SUPERVISOR else ()),
        Edit(
            "nominee.localcluster.own_cluster:cluster",
            '"nominee.cli", "up", ',
            f'"{SELF}", "{mutation.name}", "--", "nominee.cli", "up", ',
        ),
        _of_jobs(mutation),
        Edit(
            "nominee.localcluster.plan:_command",
            '[sys.executable, "-P", "-m", component.module, ',
            f'[sys.executable, "-P", "-m", *(("{SELF}", "{mutation.name}", "--")'
            f' if component.module == "{mutation.module}" else ()), component.module, ',
        ),
    )


def _of_jobs(mutation: Mutation) -> Edit:
    """Return the patch that starts the jobs of a program with the mutation."""
    child = '"nominee.lab.jobs.child", '
    return Edit(
        "nominee.lab.jobs.process:_command",
        f'"-P", "-m", {child}',
        f'"-P", "-m", "{SELF}", "{mutation.name}", "--", {child}',
    )


if __name__ == "__main__":
    main(sys.argv[1:])
