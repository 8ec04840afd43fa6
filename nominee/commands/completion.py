"""`nominee completion SHELL`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from nominee.completion import shells


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a completion script for a shell.

    The script completes commands, options, components, gates and failpoints.

    \b
    bash:  echo 'source <(nominee completion bash)' >> ~/.bashrc
    zsh:   echo 'source <(nominee completion zsh)' >> ~/.zshrc
    fish:  nominee completion fish > ~/.config/fish/completions/nominee.fish
    """
    # A cycle: the command group imports this module.
    from nominee.cli import COMPLETE_VARIABLE
    from nominee.command_group import nominee

    shells.register()
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(nominee, {}, "nominee", COMPLETE_VARIABLE).source(), nl=False)
