"""`nominee gates [NAME]`, and the difference between two versions."""

from __future__ import annotations

from difflib import get_close_matches

import click

from nominee.commands.common import echo_json, output_option
from nominee.completion.candidates import completing, gate_names, own_versions
from nominee.localcluster.supervisor.directory import JsonObject
from nominee.machinery.features.gate_sentences import SENTENCES
from nominee.machinery.printing.tables import table

_UNREAD = "No component reads it: it has no effect."


@click.command()
@click.argument("name", required=False, shell_complete=completing(gate_names))
@click.option("--emulated-version", default="", metavar="1.NN", help="List the gates of this version only.")
@click.option(
    "--diff",
    nargs=2,
    metavar="1.NN 1.NN",
    shell_complete=completing(own_versions),
    help="List the gates whose stage, default or lock differs between two versions, by component.",
)
@output_option("table", "json")
def gates(name: str | None, emulated_version: str, diff: tuple[str, str] | None, output: str) -> None:
    """List feature gates, or describe one.

    A gate is on or off by default, depending on the version; alpha gates are off. `nominee up
    --feature-gates` sets them.
    """
    # 9 ms that --help and completion would pay.
    from nominee.machinery.features import gates as features

    version = _version(emulated_version, "--emulated-version") if emulated_version else None
    if diff:
        if emulated_version:
            raise click.UsageError("--diff has its own versions: give it without --emulated-version")
        _diff(name, [_version(text, "--diff") for text in diff], output)
        return
    rows = [row for row in map(_row, features.gates().values()) if version is None or _exists(row, version)]
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


def _version(text: str, option: str) -> str:
    """Return a version that can be emulated, as 1.NN.

    Raises:
        click.BadParameter: it cannot.
    """
    # 7 ms that --help and completion would pay.
    from nominee.machinery.features import gates as features

    try:
        return str(features.parse_emulated_version(text))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None


def _diff(name: str | None, versions: list[str], output: str) -> None:
    """Print the gates that differ between two versions; one of several components is in each of them."""
    # 8 ms that --help and completion would pay.
    from nominee.machinery.features import gates as features

    old, new = versions
    rows = list(map(_row, features.gates().values()))
    if name is not None:
        rows = [_find(name, rows)]
    differ = [row for row in rows if row["versions"].get(old) != row["versions"].get(new)]
    components = sorted({component for row in differ for component in row["components"] or ("",)})
    found = {
        component: [row for row in differ if component in (row["components"] or ("",))]
        for component in components
    }
    if output == "json":
        echo_json(
            {
                component: [
                    {"name": row["name"], "versions": {each: row["versions"].get(each) for each in versions}}
                    for row in own
                ]
                for component, own in found.items()
            }
        )
        return
    cells = [
        [
            component or "-",
            row["name"],
            *(_state(row["versions"].get(each)) for each in versions),
            row["sentence"],
        ]
        for component, own in found.items()
        for row in own
    ]
    if not cells:
        click.echo(f"no gate differs between {old} and {new}", err=True)
        return
    for line in table(["COMPONENT", "NAME", old, new, "DESCRIPTION"], cells):
        click.echo(line)


def _row(gate: object) -> JsonObject:
    """Return the JSON output of a gate; `versions` has those at which it exists."""
    # 6 ms that --help and completion would pay.
    from nominee.machinery.features import gates as features

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
