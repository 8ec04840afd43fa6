"""The results of the study: of each setup a table with a row for each trial, as values and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from nominee.lab.study.plans import Plan
from nominee.lab.study.settings import FALLBACK_SECONDS, Setup
from nominee.machinery.wire.values.scalars import Json

API_VERSION = "study.nominee.dev/v2"
KIND = "ResizePreemptionStudy"
Row = Mapping[str, Json]


class ReportError(ValueError):
    """A file has no results of this version; the message names what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The rows of some setups, with the version, commit and machine that measured them."""

    version: str
    commit: str
    machine: Mapping[str, Json]
    rows: Mapping[Setup, Sequence[Row]]

    @property
    def document(self) -> dict[str, Json]:
        """Return the JSON document (docs/studies/README.md): a list for each column."""
        groups = []
        for setup, rows in self.rows.items():
            columns = {name: [row[name] for row in rows] for name in rows[0]}
            groups.append({**setup.as_json(), "columns": columns})
        return {
            "nomineeVersion": self.version,
            "commit": self.commit,
            "machine": dict(self.machine),
            "groups": groups,
        }

    @classmethod
    def read(cls, document: Mapping[str, Json]) -> Run:
        """Read a document that `document` made. Raises: KeyError, TypeError, ValueError: it is invalid."""
        rows = {}
        for group in document["groups"]:
            setup = Setup.from_json(group)
            names = list(group["columns"])
            columns = zip(*group["columns"].values(), strict=True)
            rows[setup] = [dict(zip(names, values, strict=True)) for values in columns]
        return cls(
            version=document["nomineeVersion"],
            commit=document["commit"],
            machine=document["machine"],
            rows=rows,
        )


def row_of(plan: Plan | None, seed: int, drawn: Row, measured: Row) -> Row:
    """Return the row of a trial: its seed, the drawn and the measured values, and those computed of both."""
    row: dict[str, Json] = {"seed": seed, **drawn, "evicted": measured["evicted"]}
    if plan is not None:
        row["redundant"] = max(measured["evicted"] + measured.get("byKubelet", 0) - plan.needed, 0)
    if "marked" in measured:
        nominations = measured["nominations"]
        changes = max(len(nominations) - 1 + bool(nominations and nominations[0]), 0)
        row["markedOnly"] = measured["marked"] - measured["evicted"]
        # Marks, deletions and nominations that the scheduler wrote, and its Events.
        row["writes"] = measured["marked"] + measured["evicted"] + changes + measured["events"]
        row["fallsBack"] = int(measured["deferredSeconds"] > FALLBACK_SECONDS)
    return row | {name: measured[name] for name in ("byKubelet", *SECONDS) if name in measured}


SECONDS = ("resizeSeconds", "otherSeconds")


def document_of(runs: Sequence[Run]) -> dict[str, Json]:
    """Return the document of `-o json`."""
    return {"apiVersion": API_VERSION, "kind": KIND, "runs": [run.document for run in runs]}


def text_of(runs: Sequence[Run]) -> str:
    """Return the document as text, with each column in a line of its own."""
    whole = document_of(runs)
    columns: list[str] = []
    for group in chain.from_iterable(run["groups"] for run in whole["runs"]):
        for name, values in group["columns"].items():
            group["columns"][name] = f"@{len(columns)}@"
            columns.append(json.dumps(values, separators=(",", ":")))
    text = json.dumps(whole, indent=2)
    for number, column in enumerate(columns):
        text = text.replace(f'"@{number}@"', column, 1)
    return text


def read(texts: Iterable[str]) -> list[Run]:
    """Read the runs of documents that `-o json` printed.

    Raises:
        ReportError: a text is no such document, or of another version.
    """
    runs = []
    for text in texts:
        try:
            document = json.loads(text)
        except json.JSONDecodeError as error:
            raise ReportError(f"not JSON: {error}") from None
        if not isinstance(document, dict) or document.get("kind") != KIND:
            raise ReportError(f"not a {KIND}")
        if document.get("apiVersion") != API_VERSION:
            raise ReportError(
                f"apiVersion is {document.get('apiVersion')!r}; this command reads {API_VERSION}"
            )
        try:
            runs += [Run.read(run) for run in document["runs"]]
        except (KeyError, TypeError, ValueError) as error:
            raise ReportError(f"a field is missing or wrong: {error}") from None
    return runs
