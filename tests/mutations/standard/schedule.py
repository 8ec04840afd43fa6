"""What runs next: the cheapest command with all mutations, then the next one with the others. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.mutations.standard.commands import Command
from tests.mutations.standard.results import UNMUTATED, Results


def pending(
    mutations: Sequence[str], commands: Sequence[Command], results: Results
) -> Iterator[tuple[str, Command]]:
    """Yield what is to be run; `results` grow meanwhile.

    A mutation that is found needs no other command. The program itself needs all of them.
    """
    for command in commands:
        for mutation in mutations:
            is_over = mutation != UNMUTATED and results.finding(mutation) is not None
            if not is_over and not results.has(mutation, command.words):
                yield mutation, command
