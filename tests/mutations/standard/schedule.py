"""What runs next: the simulated commands with each mutation, then those on real processes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tests.mutations.standard.commands import Command
from tests.mutations.standard.job import Task
from tests.mutations.standard.results import UNMUTATED, Results

CASES_MAX: Final = 4
"""With a mutation that leaves the undisturbed run as it is, so many of the cases that it changes are run."""


def pending(
    mutations: Sequence[str], commands: Sequence[Command], results: Results
) -> Iterator[tuple[str, list[Task]]]:
    """Yield what is to be run, the commands of one process together; `results` grow meanwhile.

    A mutation that is found needs no other command, and none needs a command that it does not change. The
    program itself needs all of them, and comes first: it says what the mutations change. What follows a
    command that ended its process is yielded once more.
    """
    simulated = [each for each in commands if each.is_simulated]
    others = [[each] for each in commands if not each.is_simulated]
    if UNMUTATED in mutations:
        yield from ((UNMUTATED, [Task(each)]) for each in simulated if results.is_due(UNMUTATED, each.words))
    for group in [*([simulated] * len(simulated)), *others]:
        for mutation in mutations:
            if mutation == UNMUTATED and group is simulated:
                continue
            is_over = mutation != UNMUTATED and results.finding(mutation) is not None
            due = [each for each in group if results.is_due(mutation, each.words)]
            tasks = [task for each in due for task in _tasks(each, results.reaching(mutation, each.label))]
            if tasks and not is_over:
                yield mutation, tasks


def _tasks(command: Command, cases: Sequence[str]) -> Iterator[Task]:
    if not cases:
        return
    undisturbed = [each for each in cases if each.endswith(" ")]
    if "*" in cases:
        yield Task(command)
    elif command.is_fixed:
        scenarios = dict.fromkeys(f"{each.rpartition(' ')[0]} " for each in (*undisturbed, *cases))
        yield Task(command, tuple(scenarios))
    else:
        yield Task(command, () if undisturbed else tuple(cases[:CASES_MAX]))
