"""What runs next: the simulated commands with each mutation, then those on real processes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.mutations.standard.commands import Command
from tests.mutations.standard.results import UNMUTATED, Results


def pending(
    mutations: Sequence[str], commands: Sequence[Command], results: Results
) -> Iterator[tuple[str, list[Command]]]:
    """Yield what is to be run, the commands of one process together; `results` grow meanwhile.

    A mutation that is found needs no other command, and none needs a command that does not execute what it
    changes. The program itself needs all of them. What follows a command that ended its process is yielded
    once more.
    """
    simulated = [each for each in commands if each.is_simulated]
    others = [[each] for each in commands if not each.is_simulated]
    for group in [*([simulated] * len(simulated)), *others]:
        for mutation in mutations:
            is_over = mutation != UNMUTATED and results.finding(mutation) is not None
            due = [
                each
                for each in group
                if results.is_due(mutation, each.words) and results.may_reach(mutation, each.words)
            ]
            if due and not is_over:
                yield mutation, due
