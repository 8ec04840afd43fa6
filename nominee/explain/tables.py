"""A verdict for a person: what happens to the pod, then node by node why, then what would change it.

Works on the JSON document of a verdict (`scheduler.explanation.verdict`), which may come from a running
scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

Document = Mapping[str, Any]


def render(document: Document) -> RenderableType:
    """The whole page of one pod."""
    expect, extra = document["expect"], document["extra"]
    parts: list[RenderableType] = [_headline(document["pod"], expect, extra)]
    if expect["feasible"] or expect["rejected"]:
        parts.append(_nodes(expect, extra))
    parts += _remarks(expect, extra)
    return Group(*parts)


def render_running(document: Document) -> RenderableType:
    """What a running scheduler says of a pod: where it is, what was tried, what it would find now."""
    title = Text.assemble((document["pod"], "bold"), "  ", (_state(document), "cyan"))
    parts: list[RenderableType] = [title]
    if document["attempts"]:
        parts += ["", Text("LAST ATTEMPTS", "bold"), _attempts(document["attempts"])]
    else:
        parts.append(Text("no attempt is remembered", "dim"))
    if "problem" in document:
        parts += ["", Text.assemble(("a plugin fails: ", "red"), document["problem"])]
    if "now" in document:
        parts += ["", Text("AS THINGS ARE NOW", "bold"), render(document["now"])]
        left_out = document["now"].get("leftOut", 0)
        if left_out:
            parts.append(Text(f"{left_out} more nodes; see --nodes", "dim"))
    return Group(*parts)


def _state(document: Document) -> str:
    state: str = document["state"]
    if state == "bound":
        return f"is bound to {document['node']}"
    if state == "unknown":
        return "does not exist any more"
    if state == "of another scheduler":
        return f"is left to {document['scheduler']}"
    text = {
        "active": "will be tried next",
        "backoff": "waits until its backoff is over",
        "unschedulable": "waits for an event that may help",
        "gated": "is held back before it is tried",
        "waiting_on_permit": "waits on Permit",
        "binding": "is being bound",
    }.get(state, state)
    if document.get("node"):
        text += f" for {document['node']}"
    if document.get("nominatedNode"):
        text += f", room is kept on {document['nominatedNode']}"
    if document.get("attempts_made"):
        text += f", after {document['attempts_made']} attempts"
    if document.get("plugins"):
        text += f" ({', '.join(document['plugins'])})"
    return text


def _attempts(attempts: list[Document]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="")
    for name in ("AT", "RESULT", "NODE", "WHY"):
        table.add_column(name, no_wrap=name != "WHY", overflow="fold")
    for attempt in attempts:
        good = attempt["result"] == "Scheduled"
        why = attempt.get("message", "")
        if good:
            why = f"{attempt['feasibleNodes']} of {attempt['evaluatedNodes']} nodes looked at fit"
        if "victims" in attempt:
            why += f" Evicts {', '.join(attempt['victims'])}."
        table.add_row(
            Text(attempt["at"]),
            Text(attempt["result"], "green" if good else "yellow"),
            Text(attempt.get("node", "-")),
            Text(why),
        )
    return table


def _headline(pod: str, expect: Document, extra: Document) -> Text:
    text = Text.assemble((pod, "bold"), f"  priority {extra.get('priority', 0)}  ")
    if "preEnqueue" in extra:
        return text.append(f"is not tried: {'; '.join(extra['preEnqueue']['reasons'])}", "yellow")
    selected = expect["selected"]
    if not selected:
        return text.append("fits nowhere", "bold red")
    names = ", ".join(selected)
    if extra.get("nominatedFastPath"):
        return text.append(f"goes to {names}, its nominated node; other nodes are not compared", "bold green")
    if len(selected) > 1:
        return text.append(f"goes to one of {names}, by chance among equals", "bold green")
    return text.append(f"goes to {names}", "bold green")


def _nodes(expect: Document, extra: Document) -> Table:
    preempts = expect["preemption"] is not None
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="")
    for name in ("NODE", "VERDICT", "PLUGIN", "WHY"):
        table.add_column(name, no_wrap=name != "WHY", overflow="fold")
    if preempts:
        table.add_column("PREEMPTION", overflow="fold")
    for node in _in_order(expect):
        cells = _cells(expect, extra, node)
        if preempts:
            cells.append(_preemption_cell(expect["preemption"], extra, node))
        table.add_row(*cells)
    return table


def _in_order(expect: Document) -> list[str]:
    """The chosen node first, then others that fit by their scores, then the rejected ones by name."""
    totals = {node: scores["total"] for node, scores in expect["scores"].items()}
    feasible: list[str] = sorted(
        expect["feasible"], key=lambda node: (node not in expect["selected"], -totals.get(node, 0), node)
    )
    return feasible + sorted(expect["rejected"])


def _cells(expect: Document, extra: Document, node: str) -> list[Text]:
    if node in expect["rejected"]:
        rejection = expect["rejected"][node]
        style = "yellow" if rejection["code"] == "Unschedulable" else "red"
        why = "; ".join(rejection["reasons"])
        if node in extra.get("heldBy", {}):
            why += f" (room is kept for {', '.join(extra['heldBy'][node])})"
        return [Text(node), Text(rejection["code"], style), Text(rejection["plugin"]), Text(why)]
    chosen = node in expect["selected"]
    scores = expect["scores"].get(node)
    total = "fits" if scores is None else f"score {scores['total']}"
    by_plugin = {} if scores is None else scores["plugins"]
    parts = ", ".join(f"{plugin} {score}" for plugin, score in sorted(by_plugin.items()) if score)
    return [
        Text(node, "bold" if chosen else ""),
        Text(f"{total}, chosen" if chosen else total, "bold green" if chosen else "green"),
        Text("-"),
        Text(parts),
    ]


def _preemption_cell(preemption: Document, extra: Document, node: str) -> Text:
    candidate = preemption["candidates"].get(node)
    if candidate is not None:
        victims = extra.get("victimsByImportance", {}).get(node, candidate["victims"])
        text = f"evict {', '.join(victims)}"
        if candidate["numPDBViolations"]:
            text += f" ({candidate['numPDBViolations']} against a PodDisruptionBudget)"
        chosen = node == preemption["nominatedNode"]
        return Text(f"{text}, chosen" if chosen else text, "bold magenta" if chosen else "magenta")
    failure = extra.get("preemptionNodeStatus", {}).get(node)
    return Text("-" if failure is None else "; ".join(failure["reasons"]))


def _remarks(expect: Document, extra: Document) -> Iterator[Text]:
    if "message" in extra:
        said = f"{extra['message']} {extra.get('preemptionMessage', '')}".rstrip()
        yield Text.assemble(("event: ", "dim"), said)
    if "nominatedNodeTies" in extra:
        yield Text.assemble(("equally good for preemption: ", "dim"), ", ".join(extra["nominatedNodeTies"]))
    if "nomination" in extra:
        before, after = extra["nomination"]["before"] or "none", extra["nomination"]["after"] or "none"
        yield Text.assemble(("nomination: ", "dim"), f"{before} -> {after}")
    held = [f"{node} for {', '.join(pods)}" for node, pods in extra.get("heldBy", {}).items()]
    if held:
        yield Text.assemble(("nominated room: ", "dim"), "; ".join(held))
    if "wokenBy" in extra:
        yield Text.assemble(("tried again after: ", "dim"), ", ".join(extra["wokenBy"]))
