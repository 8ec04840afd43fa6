"""`nominee gates [NAME]`."""

from __future__ import annotations

import click

from nominee.commands.common import echo_json, output_option
from nominee.completion.candidates import completing, gate_names
from nominee.printing.tables import table
from nominee.supervisor.directory import JsonObject

_UNREAD = "No component reads it: it has no effect."


@click.command()
@click.argument("name", required=False, shell_complete=completing(gate_names))
@click.option("--emulated-version", default="", metavar="1.NN", help="List the gates of this version only.")
@output_option("table", "json")
def gates(name: str | None, emulated_version: str, output: str) -> None:
    """List feature gates, or describe one.

    A gate is on or off by default, depending on the version; alpha gates are off. `nominee up
    --feature-gates` sets them.
    """
    from machinery.features import gates as features

    try:
        version = features.emulated(emulated_version) if emulated_version else None
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--emulated-version") from None
    rows = [
        row for row in map(_row, features.gates().values()) if version is None or _exists(row, str(version))
    ]
    if name is not None:
        rows = [_find(name, rows)]
    if output == "json":
        echo_json(rows if name is None else rows[0])
    elif name is not None:
        _describe(rows[0])
    else:
        shown = str(version or features.DEFAULT)
        for line in table(
            ["NAME", shown, "COMPONENTS", "DESCRIPTION"],
            [
                [
                    row["name"],
                    _state(row["versions"].get(shown)),
                    ",".join(row["components"]) or "-",
                    row["sentence"],
                ]
                for row in rows
            ],
        ):
            click.echo(line)


def _row(gate: object) -> JsonObject:
    """Return what the JSON output has of a gate; `versions` has those at which it exists."""
    from machinery.features import gates as features
    from machinery.features.gate_sentences import SENTENCES

    assert isinstance(gate, features.Gate)
    states = {}
    for minor in range(features.OLDEST.minor, features.NEWEST.minor + 1):
        version = features.Version(features.OLDEST.major, minor)
        step = gate.at(version)
        if step is not None and gate.exists_at(version):
            states[str(version)] = {"stage": step.stage, "default": step.default, "locked": step.locked}
    return {
        "name": gate.name,
        "sentence": SENTENCES.get(gate.name, _UNREAD),
        "components": sorted(gate.components),
        "versions": states,
        "needs": list(gate.needs),
        "aliases": sorted(alias for alias, name in features.aliases().items() if name == gate.name),
        "mergedSince": str(gate.merged_since or ""),
        "mergedInto": gate.merged_into,
    }


def _exists(row: JsonObject, version: str) -> bool:
    return version in row["versions"]


def _find(name: str, rows: list[JsonObject]) -> JsonObject:
    """Return the gate of a name or alias.

    Raises:
        click.ClickException: no gate has it; the message has the nearest names.
    """
    from difflib import get_close_matches

    known = {each: row for row in rows for each in (row["name"], *row["aliases"])}
    if name not in known:
        folded = {each.lower(): each for each in known}
        near = [folded[each] for each in get_close_matches(name.lower(), folded, n=3)]
        hint = f"; there are {', '.join(near)}" if near else "; `nominee gates` lists them"
        raise click.ClickException(f"unknown feature gate {name}{hint}")
    return known[name]


def _state(state: JsonObject | None) -> str:
    """Format `beta on`, `GA on, locked`, or `-` where the gate does not exist."""
    if state is None:
        return "-"
    text = f"{state['stage']} {'on' if state['default'] else 'off'}"
    return f"{text}, locked" if state["locked"] else text


def _describe(row: JsonObject) -> None:
    click.echo(f"{row['name']}: {row['sentence']}")
    for title, key in (("Components", "components"), ("Needs", "needs"), ("Other names", "aliases")):
        if row[key]:
            click.echo(f"{title}: {', '.join(row[key])}")
    if row["mergedInto"]:
        click.echo(f"Since {row['mergedSince']} a part of {row['mergedInto']}")
    for version, state in row["versions"].items():
        click.echo(f"  {version}  {_state(state)}")
