"""The `nominee` commands. Each is in `nominee/commands/` and is imported when it is called."""

from __future__ import annotations

import importlib
import signal
from contextlib import suppress

import click

from nominee.localcluster.output import INTERRUPTED, READER_ENDED

# Subcommand: module of nominee.commands, and attribute. A table, so that `nominee status` does not load what
# only `nominee get` needs.
COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("nominee.commands.cluster.up", "up"),
    "down": ("nominee.commands.cluster.down", "down"),
    "status": ("nominee.commands.cluster.status", "status"),
    "start": ("nominee.commands.cluster.lifecycle", "start"),
    "stop": ("nominee.commands.cluster.lifecycle", "stop"),
    "restart": ("nominee.commands.cluster.lifecycle", "restart"),
    "pause": ("nominee.commands.cluster.lifecycle", "pause"),
    "resume": ("nominee.commands.cluster.lifecycle", "resume"),
    "logs": ("nominee.commands.cluster.logs", "logs"),
    "get": ("nominee.commands.objects.get", "get"),
    "apply": ("nominee.commands.objects.manifests", "apply"),
    "create": ("nominee.commands.objects.manifests", "create"),
    "delete": ("nominee.commands.objects.manifests", "delete"),
    "patch": ("nominee.commands.objects.manifests", "patch"),
    "import": ("nominee.commands.cluster.import_state", "import_state"),
    "kubeconfig": ("nominee.commands.cluster.kubeconfig", "kubeconfig"),
    "queue": ("nominee.commands.objects.queue", "queue"),
    "explain": ("nominee.commands.objects.explain", "explain"),
    "gates": ("nominee.commands.faults.gates", "gates"),
    "failpoint": ("nominee.commands.faults.failpoint", "failpoint"),
    "fault": ("nominee.commands.faults.fault", "fault"),
    "clock": ("nominee.commands.faults.fault", "clock"),
    "verify": ("nominee.commands.measuring.verify", "verify"),
    "history": ("nominee.commands.measuring.history", "history"),
    "dashboard": ("nominee.dashboard.command", "dashboard"),
    "vpa": ("nominee.commands.measuring.vpa", "vpa"),
    "scenario": ("nominee.commands.scenario.run", "scenario"),
    "chaos": ("nominee.commands.chaos.explore", "chaos"),
    "demo": ("nominee.commands.measuring.demo", "demo"),
    "bench": ("nominee.commands.measuring.bench", "bench"),
    "study": ("nominee.commands.measuring.study", "study"),
    "skew": ("nominee.commands.measuring.skew", "skew"),
    "completion": ("nominee.commands.completion", "completion"),
    "version": ("nominee.commands.version", "version"),
}


class LazyGroup(click.Group):
    """A group of commands that imports a command only when it is called, or for its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name]
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Import the command; from then on the command handles Ctrl-C itself (see `nominee.cli`)."""
        found = super().resolve_command(ctx, args)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return found

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; the exit status is INTERRUPTED after Ctrl-C, when it has cleaned up.

        It is READER_ENDED if nothing reads its output any more; click would exit with 1.
        """
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            with suppress(OSError):  # the terminal may be closed
                click.echo("\ninterrupted", err=True)
            raise SystemExit(INTERRUPTED) from None
        except BrokenPipeError:
            raise SystemExit(READER_ENDED) from None


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(package_name="nominee", message="%(prog)s %(version)s")
def nominee() -> None:
    """Run a Kubernetes control plane on this machine, as real processes.

    Ctrl-C ends a command when it has stopped and removed what it started; the exit status is then 130.
    `up` and `scenario record` run until Ctrl-C: theirs is 0.
    """
