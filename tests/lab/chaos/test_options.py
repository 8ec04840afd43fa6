"""Options of `nominee chaos explore` and `nominee chaos run`."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from nominee.commands.chaos.explore import chaos, explore
from nominee.commands.chaos.run import run

_SHARED = ("seed", "rounds", "directory", "verbose")


def _declared(command: click.Command) -> dict[str, tuple[object, ...]]:
    """Return names, type and default of the shared options."""
    options = {option.name: option for option in command.params}
    return {
        name: (options[name].opts, options[name].type.to_info_dict(), options[name].default)
        for name in _SHARED
    }


def test_explore_and_run_share_their_options() -> None:
    assert _declared(explore) == _declared(run)


@pytest.mark.parametrize("words", [("explore", __file__), ("run", "--duration", "1s")])
def test_a_seed_is_not_negative(words: tuple[str, ...]) -> None:
    answer = CliRunner().invoke(chaos, [*words, "--seed", "-1"])
    assert answer.exit_code == 2
    assert "-1 is not in the range x>=0" in answer.output
