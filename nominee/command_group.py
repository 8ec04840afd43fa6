"""The `nominee` commands. Each is in `nominee/commands/` and is imported when it is called."""

from __future__ import annotations

import importlib
import signal
from contextlib import suppress

import click

from nominee.localcluster.output import INTERRUPTED

# Subcommand: module of nominee.commands, and attribute. A table, so that `nominee status` does not load what
# only `nominee get` needs.
COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("nominee.commands.up", "up"),
    "down": ("nominee.commands.down", "down"),
    "status": ("nominee.commands.status", "status"),
    "start": ("nominee.commands.lifecycle", "start"),
    "stop": ("nominee.commands.lifecycle", "stop"),
    "restart": ("nominee.commands.lifecycle", "restart"),
    "pause": ("nominee.commands.lifecycle", "pause"),
    "resume": ("nominee.commands.lifecycle", "resume"),
    "logs": ("nominee.commands.logs", "logs"),
    "get": ("nominee.commands.get", "get"),
    "apply": ("nominee.commands.manifests", "apply"),
    "create": ("nominee.commands.manifests", "create"),
    "delete": ("nominee.commands.manifests", "delete"),
    "patch": ("nominee.commands.manifests", "patch"),
    "kubeconfig": ("nominee.commands.kubeconfig", "kubeconfig"),
    "queue": ("nominee.commands.queue", "queue"),
    "explain": ("nominee.commands.explain", "explain"),
    "gates": ("nominee.commands.gates", "gates"),
    "failpoint": ("nominee.commands.failpoint", "failpoint"),
    "fault": ("nominee.commands.fault", "fault"),
    "clock": ("nominee.commands.fault", "clock"),
    "verify": ("nominee.commands.verify", "verify"),
    "vpa": ("nominee.commands.vpa", "vpa"),
    "scenario": ("nominee.commands.scenario.run", "scenario"),
    "chaos": ("nominee.commands.chaos.explore", "chaos"),
    "demo": ("nominee.commands.demo", "demo"),
    "bench": ("nominee.commands.bench", "bench"),
    "study": ("nominee.commands.study", "study"),
    "skew": ("nominee.commands.skew", "skew"),
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
        """Run the command. After Ctrl-C, when it has cleaned up, the exit status is INTERRUPTED."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            with suppress(OSError):  # the terminal may be closed
                click.echo("\ninterrupted", err=True)
            raise SystemExit(INTERRUPTED) from None


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(package_name="nominee", message="%(prog)s %(version)s")
def nominee() -> None:
    """Run a Kubernetes control plane on this machine, as real processes.

    Ctrl-C ends a command when it has stopped and removed what it started; the exit status is then 130.
    `up` and `scenario record` run until Ctrl-C: theirs is 0.
    """
