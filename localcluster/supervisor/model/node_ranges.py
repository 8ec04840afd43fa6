"""The nodes of kubelet processes, from their command lines. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

PREFIX = "node-"
"""The kubelet's default of --node-name-prefix."""


@dataclass(frozen=True, slots=True)
class NodeRange:
    """`count` nodes from `first` on, named by a prefix and their number."""

    prefix: str
    first: int
    count: int

    def __str__(self) -> str:
        return f"{self.prefix}{self.first}..{self.first + self.count - 1}"

    def has(self, name: str) -> bool:
        """Return whether a node of this name is in the range."""
        number = name.removeprefix(self.prefix)
        if (number == name and self.prefix) or not (number.isascii() and number.isdecimal()):
            return False
        return str(int(number)) == number and self.first <= int(number) < self.first + self.count


def of_kubelet(argv: Sequence[str]) -> NodeRange:
    """Return the nodes that a kubelet's command line names, without those of a cloud.

    Raises:
        ValueError: --nodes or --first-node is not a number.
    """
    return NodeRange(
        option_value(argv, "--node-name-prefix", PREFIX),
        int(option_value(argv, "--first-node", "0")),
        int(option_value(argv, "--nodes", "1")),
    )


def option_value(argv: Sequence[str], name: str, default: str) -> str:
    """Return the last value of an option, written `--name value` or `--name=value`."""
    value = default
    for index, argument in enumerate(argv):
        if argument == name and index + 1 < len(argv):
            value = argv[index + 1]
        elif argument.startswith(f"{name}="):
            value = argument.partition("=")[2]
    return value


def without(ranges: Iterable[NodeRange], others: Iterable[NodeRange]) -> tuple[NodeRange, ...]:
    """Return the nodes of some ranges that no other range has, each once."""
    numbers: dict[str, set[int]] = {}
    for each in ranges:
        numbers.setdefault(each.prefix, set()).update(range(each.first, each.first + each.count))
    for other in others:
        numbers.get(other.prefix, set()).difference_update(range(other.first, other.first + other.count))
    return tuple(
        NodeRange(prefix, first, count) for prefix, left in numbers.items() for first, count in _runs(left)
    )


def _runs(numbers: set[int]) -> Iterator[tuple[int, int]]:
    """Yield the first number and the length of every contiguous run."""
    first = count = 0
    for number in sorted(numbers):
        if count and number == first + count:
            count += 1
            continue
        if count:
            yield first, count
        first, count = number, 1
    if count:
        yield first, count
