"""`nominee demo`: run the stories; the exit status is 0 only if every check holds."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import click

from nominee.commands.common import end_as_by_ctrl_c

STORIES = ("expectation", "restart", "preemption", "resize", "resize-preemption")
_GROUPS = Path(__file__).with_name("node_groups.yaml")
_SCHEDULER = Path(__file__).with_name("scheduler.yaml")
_UP = (
    "--nodes=0",
    f"--node-groups={_GROUPS}",
    f"--scheduler-config={_SCHEDULER}",
    "--arg=scheduler=--plugin=nominee.demo.plugins:SlowPreBind",
    # Off by default; only resizes that are deferred beside pods of lower priority behave differently.
    "--feature-gates=InPlacePodVerticalScalingSchedulerPreemption=true",
)


@click.command()
@click.option(
    "--story", "chosen", multiple=True, type=click.Choice(STORIES), help="Run only this story. Repeatable."
)
@click.option("--keep", is_flag=True, help="Keep the state directory with the logs.")
def demo(chosen: tuple[str, ...], keep: bool) -> None:
    """Run the user stories of the KEPs.

    Each step is checked. The cluster is in a temporary directory, which is removed at the end. If a check
    fails, the logs are kept.
    """
    from nominee.demo.cluster import bring_down, bring_up
    from nominee.demo.narration import StoryError

    end_as_by_ctrl_c()
    directory = Path(tempfile.mkdtemp(prefix="nominee-demo-"))
    held = False
    try:
        click.echo("etcd, API server, scheduler, controllers, kubelet, cloud and autoscaler are starting ...")
        bring_up(directory, _UP)
        from nominee.demo.program import play

        held = play(directory, chosen or STORIES)
        keep = keep or not held
    except StoryError as error:
        keep = True
        click.echo(f"error: {error}", err=True)
    finally:
        bring_down(directory)
        if keep:
            click.echo(f"logs are in {directory / 'logs'}", err=True)
        else:
            shutil.rmtree(directory, ignore_errors=True)
    sys.exit(0 if held else 1)
