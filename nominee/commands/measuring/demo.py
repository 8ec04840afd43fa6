"""`nominee demo`: run the stories; the exit status is 0 only if every check holds."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

import click

from nominee import scenarios
from nominee.commands.common import end_as_by_ctrl_c
from nominee.commands.pages import html_option, write_results

STORIES: Final = {
    "expectation": "kep-5278-story-1-scale-down.yaml",
    "restart": "kep-5278-story-2-restart.yaml",
    "preemption": "deep-dive-preemption.yaml",
    "resize": "kep-1287-resize.yaml",
    "resize-preemption": "kep-5836-story-3-autoscaling.yaml",
}
"""Files of the folder `scenarios`, whose scenarios share one cluster."""


@click.command()
@click.option(
    "--story",
    "chosen",
    multiple=True,
    type=click.Choice(list(STORIES)),
    help="Run only this story. Repeatable.",
)
@click.option("--keep", is_flag=True, help="Keep the state directory with the logs.")
@html_option("Write a page of the stories to this file, with steps, logs and time line.")
def demo(chosen: tuple[str, ...], keep: bool, html: Path | None) -> None:
    """Run the user stories of the KEPs.

    They are scenarios, and each step is checked. The cluster is in a temporary directory, which is removed at
    the end. If a check fails, the logs are kept.
    """
    # 430 ms that --help and completion would pay.
    from nominee.lab.scenario.format.reading import read_files
    from nominee.lab.scenario.play.report import summary
    from nominee.lab.scenario.play.running import RunSettings, run_on_one_cluster

    end_as_by_ctrl_c()
    folder = Path(scenarios.__file__).parent
    found = read_files([folder / STORIES[story] for story in chosen or STORIES])
    directory = Path(tempfile.mkdtemp(prefix="nominee-demo-"))
    try:
        click.echo("etcd, API server, scheduler, controllers, kubelet, cloud and autoscaler are starting ...")
        results = run_on_one_cluster(
            found, directory, RunSettings(base=directory, keep=keep or html is not None)
        )
        if html is not None:
            results = write_results(html, results, "demo", keep)
        if len(results) < len(found) and all(result.held for result in results):
            raise click.ClickException("the cluster could not be cleaned up after a story; see above")
    except KeyboardInterrupt:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    for line in summary(results):
        click.echo(line)
    if directory.exists():
        click.echo(f"logs are in {directory / 'logs'}", err=True)
    sys.exit(0 if len(results) == len(found) and all(result.held for result in results) else 1)
