"""Run a program of Nominee with a known bug: `python -m tests.mutations.launch MUTATION -- MODULE ARGS`.

If MODULE is the mutation's component, it is patched before its main runs. If it is another program that
starts processes (`nominee.cli`, `nominee.lab.jobs.child`), the processes that it starts get the mutation,
too.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

from tests.mutations.catalogue import BY_NAME as KNOWN
from tests.mutations.catalogue import Mutation
from tests.mutations.patch import Edit, apply
from tests.mutations.unseen.table import UNSEEN

SELF = "tests.mutations.launch"
SUPERVISOR = "nominee.localcluster.supervisor"
BY_NAME = {**KNOWN, **{unseen.mutation.name: unseen.mutation for unseen in UNSEEN}}
ROOT = Path(__file__).resolve().parents[2]
_STARTS_PROCESSES = ("nominee.cli", "nominee.lab.jobs.child")


def main(argv: list[str]) -> None:
    """Patch, and run the module as the main program."""
    if len(argv) < 3 or argv[1] != "--" or argv[0] not in BY_NAME:
        sys.exit(f"usage: {SELF} MUTATION -- MODULE ARGS; mutations: {', '.join(BY_NAME)}")
    mutation, module = BY_NAME[argv[0]], argv[2]
    # In a simulation the components run in this process.
    for edit in mutation.edits if "--simulate" in argv else edits(mutation, module):
        apply(edit)
    # The processes that this one starts have no working directory on their path (`-P`).
    os.environ["PYTHONPATH"] = str(ROOT)
    sys.argv = [module, *argv[3:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def edits(mutation: Mutation, module: str) -> tuple[Edit, ...]:
    """Return the patches of a program.

    Raises:
        SystemExit: the program neither has the bug nor starts one that has.
    """
    if module == mutation.module:
        return mutation.edits
    if module not in _STARTS_PROCESSES:
        sys.exit(f"{module} does not start {mutation.module}; the mutation would have no effect")
    prefix = f'"-P", "-m", "{SELF}", "{mutation.name}", "--", '
    supervised = Edit(
        "nominee.commands.cluster.up:up.callback",
        f'"{SUPERVISOR}",',
        f'"{SELF}", "{mutation.name}", "--", "{SUPERVISOR}",',
    )
    return (
        *((supervised,) if mutation.module == SUPERVISOR else ()),
        Edit(
            "nominee.localcluster.own_cluster:cluster",
            '"-P", "-m", "nominee.cli", ',
            f'{prefix}"nominee.cli", ',
        ),
        Edit(
            "nominee.lab.jobs.process:_command",
            '"-P", "-m", "nominee.lab.jobs.child", ',
            f'{prefix}"nominee.lab.jobs.child", ',
        ),
        Edit(
            "nominee.localcluster.plan:_command",
            '[sys.executable, "-P", "-m", component.module, ',
            f'[sys.executable, "-P", "-m", *(("{SELF}", "{mutation.name}", "--")'
            f' if component.module == "{mutation.module}" else ()), component.module, ',
        ),
    )


if __name__ == "__main__":
    main(sys.argv[1:])
