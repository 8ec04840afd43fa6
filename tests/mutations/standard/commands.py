"""The standard commands, read from the recipe of `make chaos`, with longer times. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from nominee.machinery.wire.values.scalars import parse_seconds

TIMES_LONGER: Final = 3
"""So many times the time and the cases of `make chaos`; of a replay all recorded cases are run."""
REAL_SECONDS: Final = 60.0
"""What a command on real processes takes beside its time: they start, come to rest, and are stopped."""
# Not `make chaos-seed`, which has a seed of its own.
_RECIPE = re.compile(r"^chaos(?!-seed:)[-\w]*:.*\n((?:\t.*\n)*)", re.MULTILINE)
_SHELL: Final = frozenset(";|&")
_VARIABLE = re.compile(r"^(\w+) := (.*)$", re.MULTILINE)
_PROGRAM = "nominee chaos "
_FIXED: Final = (("--outcomes", "replay"), ("--cases", "0"))
_TIMES: Final = ("--budget", "--duration")
_CASES: Final = "--cases"


class RecipeError(ValueError):
    """A recipe of `make chaos` is not as it is expected; the text says how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command: its words after `nominee`, and the seconds that it may take, all rounds together.

    Simulated, these are seconds of processor time.
    `label` names it in the table; no two have the same.
    """

    label: str
    words: tuple[str, ...]
    seconds: float

    @property
    def is_simulated(self) -> bool:
        return "--simulate" in self.words or self.words[1:2] == ("generate",)

    @property
    def has_cases(self) -> bool:
        """Return whether it can run one case alone."""
        return self.words[1:2] != ("generate",)

    @property
    def is_fixed(self) -> bool:
        """Return whether its cases are the same whatever they show: recorded ones, or undisturbed runs."""
        return any(pair in _FIXED for pair in zip(self.words, self.words[1:], strict=False))

    def narrowed(self, place: str) -> list[str]:
        """Return the words that run one case of one scenario alone, `FILE NAME CASE`.

        Or all fixed cases of the scenario.
        """
        file, name, case = place.split(" ")
        words, before = list[str](), ""
        for word in self.words:
            if word.endswith(".yaml"):
                word = file if file not in words else ""
            if word and "--name" not in (word, before):
                words.append(word)
            before = word
        return [*words, "--name", name, *([] if self.is_fixed else ["--case", case])]

    @property
    def cost_seconds(self) -> float:
        """Return about how long it takes where nothing is found."""
        return self.seconds + (0.0 if self.is_simulated else REAL_SECONDS)

    def limited(self, seconds_max: float) -> Command:
        """Return the command with no more than these seconds; a random run has fewer rounds first.

        One with fixed cases does not end earlier.
        """
        if self.seconds <= seconds_max or self.is_fixed:
            return self
        changed = dict(zip(self.words, self.words[1:], strict=False))
        rounds = int(changed.get("--rounds", "1"))
        fewer = max(1, int(rounds * seconds_max / self.seconds))
        share = min(1.0, seconds_max / (self.seconds * fewer / rounds))
        words, before = list[str](), ""
        for word in self.words:
            if before in _TIMES:
                word = f"{share * parse_seconds(word):g}s"
            elif before == "--rounds":
                word = str(fewer)
            words.append(word)
            before = words[-1]
        return replace(self, words=tuple(words), seconds=seconds_max)


def standard_commands(makefile: str) -> tuple[Command, ...]:
    """Return the commands of the Makefile's text, the cheapest first.

    Raises:
        RecipeError: there is no command, or one has no limit of time, or is several of a shell.
    """
    text = makefile.replace("\\\n", " ")
    for name, value in _VARIABLE.findall(text):
        text = text.replace(f"$({name})", value)
    lines = [line for recipe in _RECIPE.finditer(text) for line in recipe[1].splitlines()]
    commands: list[Command] = []
    for line in lines:
        _, program, rest = line.partition(_PROGRAM)
        if program:
            commands.append(_command(shlex.split(rest), commands))
    if not commands:
        raise RecipeError(f"the recipes of `make chaos` have no line with `{_PROGRAM.strip()}`")
    return tuple(sorted(commands, key=lambda each: each.cost_seconds))


def _command(words: Sequence[str], earlier: Sequence[Command]) -> Command:
    if any(_SHELL & set(word) for word in words):
        raise RecipeError(f"`{shlex.join(words)}` is not one command: give each a line of its own")
    changed, seconds = ["chaos"], None
    waits = ""
    for word in (part for each in words for part in _parts(each)):
        if waits:
            seconds = TIMES_LONGER * parse_seconds(word)
            word = f"{seconds:g}s"
        waits = word if word in _TIMES else ""
        changed.append(word)
    if seconds is not None and "--rounds" in changed:
        seconds *= int(changed[changed.index("--rounds") + 1])
    if seconds is None:
        raise RecipeError(f"`{shlex.join(words)}` has neither of {', '.join(_TIMES)}")
    if _CASES in changed:
        place = changed.index(_CASES)
        if "replay" in changed:
            del changed[place : place + 2]
        else:
            changed[place + 1] = str(TIMES_LONGER * int(changed[place + 1]))
    if changed[1] in ("explore", "generate"):
        changed.append("--stop")
    if changed[1] == "generate":
        changed += ["--tries", "0"]
    label = _label(changed)
    same = sum(each.label == label or each.label.startswith(f"{label} (") for each in earlier)
    return Command(
        label=f"{label} ({same + 1})" if same else label, words=(*changed, "-o", "json"), seconds=seconds
    )


def _parts(word: str) -> tuple[str, ...]:
    """Split `--budget=45s`, which is the same as two words."""
    option, is_one, value = word.partition("=")
    return (option, value) if is_one and option in _TIMES else (word,)


def _label(words: Sequence[str]) -> str:
    """Return the subcommand, the scenario's name or that of its file, and where it runs."""
    names = [word.rpartition("/")[2].removesuffix(".yaml") for word in words if word.endswith(".yaml")]
    if "--name" in words:
        names = [words[words.index("--name") + 1]]
    return " ".join([words[1], *names, *(["simulated"] if "--simulate" in words else [])])
