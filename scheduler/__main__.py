"""Run the scheduler as a process: `python -m nominee.scheduler --dir D`."""

from __future__ import annotations

import click

from nominee.machinery.process.component import Process, component_command


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
    help="An out-of-tree plugin that profiles may name; also found by entry point nominee.scheduler_plugins.",
)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=None,
    help="Schedule only while holding the lease kube-system/kube-scheduler.  [default: as --config says]",
)
@click.option(
    "--simulator-annotations",
    is_flag=True,
    help="Write the result of every plugin into pods' annotations, as kube-scheduler-simulator does. Slow.",
)
@click.option(
    "--resize-preemption-flavour",
    default="kep",
    show_default=True,
    type=click.Choice(["kep", "1.37"]),
    help="With InPlacePodVerticalScalingSchedulerPreemption: the design of KEP-5836, or what Kubernetes 1.37"
    " shipped (Permit parks a resize that fits; a plugin reads the node's policy).",
)
@click.option(
    "--resize-preemption-tracking",
    default="none",
    show_default=True,
    type=click.Choice(["none", "memory", "nominated-node-name", "spec-node-name"]),
    help="How a scheduler knows that victims for a deferred resize are still terminating, and chooses no"
    " others: KEP-5836's options 1 to 4 against double preemption. nominated-node-name needs the API server's"
    " --allow-nominated-node-name-of-deferred-resizes.",
)
@click.option(
    "--resize-fit",
    default="scheduler",
    show_default=True,
    type=click.Choice(["scheduler", "kubelet"]),
    help="What other pods count for when a deferred resize is tried: the most of desired, allocated and"
    " actual, or like the kubelet the most of allocated and actual.",
)
def main(
    process: Process,
    config: str,
    plugins: tuple[str, ...],
    leader_elect: bool | None,
    simulator_annotations: bool,
    resize_preemption_flavour: str,
    resize_preemption_tracking: str,
    resize_fit: str,
) -> None:
    """Run the scheduler until it is stopped."""
    # Imported once the options are read: `--help` and a wrong option need neither numpy nor the plugins.
    from nominee.scheduler.framework.resize_preemption import Fit, Flavour, ResizePreemption, Tracking
    from nominee.scheduler.shell.process.run import SchedulerOptions, check_settings, run_scheduler

    resizes = ResizePreemption(
        Flavour(resize_preemption_flavour), Tracking(resize_preemption_tracking), Fit(resize_fit)
    )
    settings = SchedulerOptions(config, plugins, leader_elect, simulator_annotations, resizes)
    process.run(lambda: run_scheduler(process, settings), check=lambda: check_settings(process, settings))


if __name__ == "__main__":
    main()
