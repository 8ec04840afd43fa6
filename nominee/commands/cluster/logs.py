"""`nominee logs COMPONENT`."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

import click

from nominee.commands.common import directory_option
from nominee.completion.candidates import process_names
from nominee.localcluster.supervisor.directory import StateDirectory
from nominee.localcluster.up_options.options import OptionError, target

_POLL_SECONDS = 0.2
_BLOCK = 64 * 1024


@click.command()
@click.argument("component", shell_complete=process_names)
@directory_option
@click.option("-f", "--follow", is_flag=True, help="Print new lines as they are written.")
@click.option("-n", "--tail", type=click.IntRange(min=0), help="Print only the last lines.")
def logs(component: str, directory: Path, follow: bool, tail: int | None) -> None:
    """Print the log of a process.

    COMPONENT is a process such as `scheduler` or `kubelet-1`, or `supervisor`.
    """
    state = StateDirectory(directory)
    try:
        name = component if component == "supervisor" else target("COMPONENT", component)
    except OptionError as error:
        raise click.UsageError(error.message) from None
    path = state.log_file("kubelet-0" if name == "kubelet" else name)
    if not path.exists():
        known = ", ".join(sorted(found.stem for found in state.logs.glob("*.log"))) or "none"
        raise click.ClickException(f"no log exists for {path}; logs exist for: {known}")
    if follow:
        # There is nothing to clean up: Ctrl-C ends the process as the signal does by default.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    for chunk in _read(path, follow=follow, tail=tail):
        click.echo(chunk, nl=False)


def _read(path: Path, *, follow: bool, tail: int | None) -> Iterator[bytes]:
    with path.open("rb") as log:
        if tail is not None:
            log.seek(_start_of_tail(path, tail))
        while True:
            chunk = log.read(_BLOCK)
            if chunk:
                yield chunk
            elif not follow:
                return
            else:
                select.select([], [], [], _POLL_SECONDS)


def _start_of_tail(path: Path, lines: int) -> int:
    """Return the offset of the last `lines` lines, read block by block from the end."""
    with path.open("rb") as log:
        end = log.seek(0, os.SEEK_END)
        position, seen = end, 0
        while position > 0:
            size = min(_BLOCK, position)
            position -= size
            log.seek(position)
            block = log.read(size)
            ends = len(block)
            while (found := block.rfind(b"\n", 0, ends)) >= 0:
                # The newline at the end of the file begins no further line.
                if position + found != end - 1:
                    seen += 1
                if seen >= lines:
                    return end if lines == 0 else position + found + 1
                ends = found
    return 0
