"""`nominee version`."""

from __future__ import annotations

import click

from nominee.commands.common import echo_json, output_option


@click.command()
@output_option("text", "json")
def version(output: str) -> None:
    """Print our version and the emulated ones."""
    # 20 ms that --help and completion would pay.
    from importlib.metadata import version as installed

    from nominee.machinery.features import gates as versions

    facts = {
        "nominee": installed("nominee"),
        "emulatedVersions": [
            f"1.{minor}" for minor in range(versions.OLDEST.minor, versions.NEWEST.minor + 1)
        ],
        "default": str(versions.DEFAULT),
    }
    if output == "json":
        echo_json(facts)
        return
    click.echo(f"nominee {facts['nominee']}")
    click.echo(f"emulates Kubernetes {versions.OLDEST} to {versions.NEWEST} (default {versions.DEFAULT})")
