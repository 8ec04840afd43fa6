"""The option `--executor`: where the jobs of a command run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nominee.commands.common import F

if TYPE_CHECKING:
    from nominee.lab.jobs.job import Executor

_LOCAL, _DASK = "local", "dask="


class _Address(click.ParamType["str"]):
    """`local`, or `dask=ADDRESS`; returns the address of Dask's scheduler, "" for local."""

    name = "executor"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the address."""
        text = str(value)
        if text in (_LOCAL, ""):
            return ""
        address = text.removeprefix(_DASK)
        if address in (text, ""):
            self.fail(
                f"{text!r} is neither local nor dask=ADDRESS, as in dask=tcp://10.0.0.1:8786", param, ctx
            )
        return address


def executor_option(command: F) -> F:
    """Add `--executor`, as `scheduler_address: str`; "" is this machine."""
    return click.option(
        "--executor",
        "scheduler_address",
        type=_Address(),
        default=_LOCAL,
        show_default=True,
        metavar="local|dask=ADDRESS",
        help="Run on this machine, or on the workers of a Dask cluster (docs/skew.md).",
    )(command)


def executor_of(scheduler_address: str, jobs: int = 1) -> Executor:
    """Return the executor of an address; `jobs` run at a time on this machine."""
    if scheduler_address:
        from nominee.lab.jobs.dask import DaskExecutor

        return DaskExecutor(scheduler_address)
    from nominee.lab.jobs.local import LocalExecutor

    return LocalExecutor(jobs)
