"""The heat map: one static HTML page without any other file. A cell opens its steps, logs and history.

The colour of a cell that passed is what a user saw there; the text in it says the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

from nominee.lab.skew.matrix.model import JsonObject
from nominee.lab.skew.pages.grid import OUTSIDE, distinct, grid, mark
from nominee.lab.skew.pages.markdown import cells_text
from nominee.lab.timeline import report
from nominee.lab.timeline.report import Block, Item

STYLE: Final = Path(__file__).with_name("page.css")
_FILES: Final = ("scenario.yaml", "steps.txt", "result.json", "history.gz", "logs/")
_KEY: Final = (
    '<p class="key"><span class="failed">✗ failed</span><span class="error">! could not run</span>'
    '<span class="skipped">- skipped</span><span class="none">· not selected</span> All others passed; their '
    "colour is what a user saw. A dashed border and * are outside Kubernetes' version skew policy. Real "
    "processes played the cells; simulations those in italics. A cell opens its steps, logs and object "
    "history.</p><noscript><p>Without JavaScript the cells do not open; their files are in the folder "
    "<code>cells</code> beside this page.</p></noscript>"
)
_CASE_COLOURS = 7
_NO_EVIDENCE: Final[JsonObject] = {"steps": [], "logs": {}, "history": []}


def page(document: JsonObject, evidence: Mapping[str, JsonObject]) -> str:
    """Return the page of a report; `evidence` is the result of `evidence.read`, by cell."""
    items = {cell["id"]: _item(cell, evidence.get(cell["id"], _NO_EVIDENCE)) for cell in document["cells"]}
    rows = [row for row in document["rows"] if _cells(document, row)]
    title = document["title"] or document["matrix"]
    parts = [
        f'<p class="summary">{escape(document["summary"])}.</p>',
        f'<p class="quiet">{escape(_origin(document))}</p>',
        _KEY,
        f"<nav>{''.join(_contents(document, rows))}</nav>",
        *_answers(document),
        *(line for row in rows for line in _row(document, row)),
        report.dialog(items, {}),
    ]
    return report.frame(f"skew: {title}", "\n".join(parts), STYLE.read_text(encoding="utf-8"))


def _item(cell: JsonObject, evidence: JsonObject) -> Item:
    """Return the item of a cell."""
    clock = "s of a simulation" if cell["simulated"] else "s on real processes"
    reason = f": {cell['reason']}" if cell["reason"] else ""
    programs = [f"The {name} is the program {command}." for name, command in cell["programs"].items()]
    unsupported = [f"Outside the version skew policy: {each}" for each in cell["unsupported"]]
    saw = "What a user saw" if cell["outcome"] == "passed" else "What a user should have seen"
    return Item(
        name=cell["name"],
        outcome=cell["outcome"],
        texts=[f"{cell['seconds']:.1f} {clock}{reason}", *programs, *unsupported],
        blocks=[
            Block(saw, [f"{each['label']}: {each['case']}: {each['see']}" for each in cell["seen"]], True),
            Block(
                "Violated invariants",
                [f"{each['invariant']}: {each['message']}" for each in cell["violations"]],
                True,
            ),
            Block("Steps", evidence["steps"], True),
            Block("Versions and gates", list(map(_stage, cell["stages"])), len(cell["stages"]) == 1),
            Block("Object history (revision, object, change)", evidence["history"]),
            *(Block(f"Log of {name}", lines) for name, lines in evidence["logs"].items()),
        ],
        commands={
            "Play it again, where the matrix was run": cell["reproduce"],
            "The history of its objects, likewise": cell["historyCommand"],
        },
        files={name: f"{cell['directory']}/{name}" for name in _FILES},
    )


def _stage(stage: JsonObject) -> str:
    versions = ", ".join(f"{component} {version}" for component, version in stage["versions"].items())
    gates = (
        f"; {component} {','.join(f'{gate}={str(on).lower()}' for gate, on in found.items())}"
        for component, found in stage["featureGates"].items()
    )
    return f"{stage['label']}: {versions}{''.join(gates)}"


def _origin(document: JsonObject) -> str:
    commits = document["commits"]
    commit = f" (commit {', '.join(commits)})" if commits else ""
    machine = document["machine"]
    selection = "every combination" if document["selection"] == "all" else "a pairwise selection"
    only = f", those that match {document['only']}" if document["only"] else ""
    return (
        f"Nominee {document['version']}{commit} emulates the versions and feature gates; the processes are "
        f"not those of Kubernetes. {document['file']}: {selection} of {document['possible']} cells{only}. "
        f"The command that wrote this page took {document['seconds']:.0f} s on {machine['cores']} cores "
        f"({machine['processor']})."
    )


def _contents(document: JsonObject, rows: Sequence[JsonObject]) -> Iterator[str]:
    yield "<ul>"
    for kep, answers in _answers_by_kep(document).items():
        yield f'<li><a href="#answers-{kep}">Answers of KEP-{kep}</a> <span class="quiet">'
        yield f"{escape(_verdicts(answers))}</span></li>"
    for row in rows:
        cells = _cells(document, row)
        passed = sum(cell["outcome"] == "passed" for cell in cells)
        yield f'<li><a href="#row-{escape(row["name"])}">{_inline(row["title"] or row["name"])}</a> '
        yield f'<span class="quiet">{passed} of {len(cells)}</span></li>'
    yield "</ul>"


def _cells(document: JsonObject, row: JsonObject) -> list[JsonObject]:
    return [cell for cell in document["cells"] if cell["row"] == row["name"]]


# Rows


def _row(document: JsonObject, row: JsonObject) -> Iterator[str]:
    cells = _cells(document, row)
    yield f'<h2 id="row-{escape(row["name"])}">{_inline(row["title"] or row["name"])}</h2>'
    section = f": {_inline(row['section'])}" if row["section"] else ""
    yield f'<p class="quiet">Row <code>{escape(row["name"])}</code>{section}</p>'
    found = grid(cells)
    colours = _colours(row)
    heads = [f"{found.column_factor} {value}".strip() or "result" for value in found.columns]
    yield '<div class="scroll"><table class="map"><thead><tr>'
    yield "".join(f'<th scope="col">{escape(text)}</th>' for text in [*found.line_factors, *heads])
    yield "</tr></thead><tbody>"
    for header, line in found.lines:
        texts = "".join(f'<th scope="row">{_breakable(text)}</th>' for text in header)
        yield f"<tr>{texts}{''.join(_cell(cell, colours) for cell in line)}</tr>"
    yield "</tbody></table></div>"
    if row["cases"]:
        yield '<table class="list">'
        for case in row["cases"]:
            colour = f'<td class="{colours[case["name"]]}">{escape(case["name"])}</td>'
            yield f"<tr>{colour}<td>{escape(case['when'])}</td><td>{_inline(case['see'])}</td></tr>"
        yield "</table>"


def _colours(row: JsonObject) -> Mapping[str, str]:
    """Return the class of each case of a row."""
    names = dict.fromkeys(case["name"] for case in row["cases"])
    return {name: f"case{number % _CASE_COLOURS}" for number, name in enumerate(names)}


def _cell(cell: JsonObject | None, colours: Mapping[str, str]) -> str:
    if cell is None:
        return '<td class="none" title="not selected">·</td>'
    outside = f" {OUTSIDE}" if cell["unsupported"] else ""
    cases = distinct([each["case"] for each in cell["seen"]])
    if cell["outcome"] != "passed":
        button = _button(cell, escape(f"{mark(cell)} {cell['outcome']}"), cell["outcome"])
    elif len(cases) == 1:
        button = _button(cell, escape(cases[0]) + outside, colours[cases[0]])
    else:
        steps = " → ".join(f'<span class="{colours[case]}">{escape(case)}</span>' for case in cases)
        button = _button(cell, (steps or "passed") + outside, "path")
    return f"<td>{button}</td>"


def _button(cell: JsonObject, content: str, colour: str) -> str:
    outside = " outside" if cell["unsupported"] else ""
    simulated, played = (" simulated", ", simulated") if cell["simulated"] else ("", "")
    return (
        f'<button class="{colour}{outside}{simulated}" data-item="{escape(cell["id"])}" '
        f'title="{escape(cell["name"] + played)}">{content}</button>'
    )


# Answers


def _answers_by_kep(document: JsonObject) -> Mapping[int, list[JsonObject]]:
    found: dict[int, list[JsonObject]] = {}
    for answer in document["answers"]:
        found.setdefault(answer["kep"], []).append(answer)
    return found


def _verdicts(answers: Sequence[JsonObject]) -> str:
    counts = {
        verdict: sum(answer["verdict"] == verdict for answer in answers)
        for verdict in ("confirmed", "contradicted", "not tested")
    }
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)


def _answers(document: JsonObject) -> Iterator[str]:
    by_name = {cell["name"]: cell for cell in document["cells"]}
    for kep, answers in _answers_by_kep(document).items():
        yield f'<h2 id="answers-{kep}">Answers of KEP-{kep}: {escape(_verdicts(answers))}</h2>'
        section = ""
        for answer in answers:
            if answer["section"] != section:
                yield "</table>" if section else ""
                section = answer["section"]
                yield f'<h3>{_inline(section)}</h3><table class="list answers">'
            yield _answer(answer, by_name)
        yield "</table>"


_VERDICT_MARKS: Final = {"confirmed": "✓ ", "contradicted": "✗ "}


def _answer(answer: JsonObject, by_name: Mapping[str, JsonObject]) -> str:
    verdict = answer["verdict"]
    parts = [_inline(answer["reason"])] if answer["reason"] else []
    against, others = answer["against"], [name for name in answer["cells"] if name not in answer["against"]]
    parts += [
        f"{_button(by_name[name], escape(name), '')} {_inline(seen)}<br>" for name, seen in against.items()
    ]
    if others:
        buttons = "".join(_button(by_name[name], escape(name), "") for name in others)
        verb = "confirm" if len(others) > 1 else "confirms"
        parts.append(f"<details><summary>{cells_text(len(others))} {verb} it</summary>{buttons}</details>")
    parts += [_inline(answer["note"])] if answer["note"] else []
    return (
        f"<tr><td>{_inline(answer['answer'])}</td>"
        f'<td class="{verdict.replace(" ", "-")}">{_VERDICT_MARKS.get(verdict, "")}{verdict}</td>'
        f"<td>{' '.join(parts)}</td></tr>"
    )


def _inline(text: str) -> str:
    """Return text as HTML, with the text between backticks as code, and of a link its text only."""
    plain = re.sub(r"\[([^\]]*)\]\([^)\s]*\)", r"\1", text)
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(plain))


def _breakable(text: str) -> str:
    """Return text as HTML in which a long name of a gate may be broken before a capital letter."""
    return re.sub(r"(?<=[a-z])(?=[A-Z=])", "<wbr>", escape(text))
