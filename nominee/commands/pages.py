"""The option --html, and the pages that it writes."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nominee.commands.common import F

if TYPE_CHECKING:
    from nominee.lab.scenario.result import ScenarioResult


def html_option(text: str) -> Callable[[F], F]:
    """Add `--html FILE`, which writes a page; `text` is its help."""

    def in_folder(_context: click.Context, _parameter: click.Parameter, file: Path | None) -> Path | None:
        """Refuse a file in no directory, before the command takes its time."""
        if file is not None and not file.absolute().parent.is_dir():
            raise click.ClickException(f"{file} cannot be written: {os.strerror(errno.ENOENT)}")
        return file

    return click.option(
        "--html",
        type=click.Path(dir_okay=False, writable=True, path_type=Path),
        metavar="FILE",
        callback=in_folder,
        help=text,
    )


def write_page(file: Path, text: str) -> None:
    """Write a page. Raises: click.ClickException: it cannot be written."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{file} cannot be written: {error.strerror}") from None


def write_results(
    file: Path, results: Sequence[ScenarioResult], title: str, keep: bool, simulated: bool = False
) -> list[ScenarioResult]:
    """Write the page of results; remove the directories of those that held, unless `keep`."""
    # 200 ms that --help and completion would pay.
    from nominee.lab.scenario.play.page import page

    write_page(file, page(results, title, keep=keep, simulated=simulated))
    held = {
        each.directory: all(one.held for one in results if one.directory == each.directory)
        for each in results
    }
    for directory in (each for each, all_held in held.items() if each and all_held and not keep):
        shutil.rmtree(directory, ignore_errors=True)
    return [replace(each, directory="") if held[each.directory] and not keep else each for each in results]
