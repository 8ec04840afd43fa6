"""Run the scheduler as a process: `python -m scheduler --dir D`."""

from __future__ import annotations

import click

from machinery.process.component import Process, component_command


@component_command("scheduler")
@click.option(
    "--config",
    default="",
    metavar="FILE",
    help="KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1), YAML or JSON.",
)
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="MODULE:CLASS",
    help="A plugin from outside that profiles may name; also found by entry point nominee.scheduler_plugins.",
)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=None,
    help="Schedule only while holding the lease kube-system/kube-scheduler.  [default: as --config says]",
)
@click.option(
    "--simulator-annotations",
    is_flag=True,
    help="Write what every plugin says into pods' annotations, as kube-scheduler-simulator does. Slow.",
)
def main(
    process: Process,
    config: str,
    plugins: tuple[str, ...],
    leader_elect: bool | None,
    simulator_annotations: bool,
) -> None:
    """Run the scheduler until it is stopped."""
    from scheduler.shell.run import Settings, read_settings, run_scheduler

    settings = Settings(config, plugins, leader_elect, simulator_annotations)
    process.run(lambda: run_scheduler(process, settings), check=lambda: read_settings(process, settings))


if __name__ == "__main__":
    main()
