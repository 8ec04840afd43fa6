"""Render explanations for a terminal: the pod's result, each node's reason, changes that would help."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nominee.scheduler.explanation.format import (
    Attempt,
    DeferredResize,
    LivePodExplanation,
    NodeScore,
    PodExplanation,
    Preemption,
)

_ALIKE_MAX: Final = 3
"""So many nodes with the same verdict have a row each."""
_NAMES_MAX: Final = 8
"""So many of the nodes among which the scheduler chooses are named."""
_STATES = {
    "Active": "is in the active queue",
    "Backoff": "is in the backoff queue",
    "Unschedulable": "is unschedulable and waits for a cluster event",
    "Gated": "is gated",
    "Scheduling": "is being scheduled",
    "WaitingOnPermit": "waits on Permit",
    "Binding": "is being bound",
}


def render(explanation: PodExplanation) -> RenderableType:
    """Return the page of one pod."""
    parts: list[RenderableType] = [_headline(explanation)]
    if explanation["feasibleNodes"] or explanation["rejectedNodes"]:
        parts.append(_nodes(explanation))
    parts += _remarks(explanation)
    return Group(*parts)


def render_live(document: LivePodExplanation) -> RenderableType:
    """Return the page of a running cluster's pod: its state, its last attempts, the decision of now."""
    parts: list[RenderableType] = [Text.assemble((document["pod"], "bold"), "  ", (_state(document), "cyan"))]
    if document["attempts"]:
        parts += ["", Text("LAST ATTEMPTS", "bold"), _attempts(document["attempts"])]
    else:
        parts.append(Text("no attempts are recorded", "dim"))
    if document["error"]:
        parts += ["", Text.assemble(("a plugin failed: ", "red"), document["error"])]
    explanation = document["explanation"]
    if explanation is not None:
        parts += ["", Text("NOW", "bold"), render(explanation)]
        if explanation["omittedNodes"]:
            parts.append(Text(f"{explanation['omittedNodes']} more nodes; see --nodes", "dim"))
    return Group(*parts)


def _state(document: LivePodExplanation) -> str:
    state = document["state"]
    if state == "Bound":
        return f"is bound to {document['node']}"
    if state == "Unknown":
        return "does not exist any more"
    if state == "OtherScheduler":
        return f"belongs to the scheduler {document['schedulerName']}"
    text = _STATES[state]
    if document["node"]:
        text += f" to {document['node']}" if state == "Binding" else f" for {document['node']}"
    if document["nominatedNode"]:
        text += f", is nominated to {document['nominatedNode']}"
    if document["attemptCount"]:
        text += f", after {document['attemptCount']} attempts"
    if document["rejectedBy"]:
        text += f" ({', '.join(document['rejectedBy'])})"
    return text


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="")
    for name in columns:
        table.add_column(name, no_wrap=name not in ("WHY", "PREEMPTION"), overflow="fold")
    return table


def _attempts(attempts: Sequence[Attempt]) -> Table:
    table = _table("TIME", "RESULT", "NODE", "WHY")
    for attempt in attempts:
        is_scheduled = attempt["result"] == "Scheduled"
        why = attempt["message"]
        if is_scheduled:
            why = f"{attempt['feasibleNodes']} of {attempt['evaluatedNodes']} evaluated nodes are feasible"
        if attempt["victims"]:
            why += f" Evicts {', '.join(attempt['victims'])}."
        table.add_row(
            Text(attempt["time"]),
            Text(attempt["result"], "green" if is_scheduled else "yellow"),
            Text(attempt["node"] or "-"),
            Text(why),
        )
    return table


def _headline(explanation: PodExplanation) -> Text:
    text = Text.assemble((explanation["pod"], "bold"), f"  priority {explanation['priority']}  ")
    gate, selected = explanation["preEnqueue"], explanation["selectedNodes"]
    if "deferredResize" in explanation:
        return text.append_text(_resize(explanation, explanation["deferredResize"]))
    if gate is not None:
        return text.append(f"is not scheduled: {'; '.join(gate['reasons'])}", "yellow")
    if not selected:
        return text.append("fits on no node", "bold red")
    names = ", ".join(selected[:_NAMES_MAX])
    if len(selected) > _NAMES_MAX:
        names += f" and {len(selected) - _NAMES_MAX} more"
    if explanation["usesNominatedNode"]:
        return text.append(f"goes to {names}, its nominated node; no other node is scored", "bold green")
    if len(selected) > 1:
        return text.append(f"goes to one of {names}, chosen at random among equal scores", "bold green")
    return text.append(f"goes to {names}", "bold green")


def _resize(explanation: PodExplanation, resize: DeferredResize) -> Text:
    """Return the verdict about a deferred resize."""
    node, preemption = resize["node"], explanation["preemption"]
    if explanation["feasibleNodes"]:
        return Text(f"its resize fits on {node}; it waits for the kubelet", "bold green")
    start = f"its resize is deferred on {node}"
    if resize["preemptionDisabledBy"]:
        return Text(f"{start}; no preemption: {resize['preemptionDisabledBy']}", "bold red")
    if preemption is not None and preemption["victims"]:
        return Text(f"{start}; preemption evicts {', '.join(preemption['victims'])}", "bold magenta")
    return Text(f"{start}, and preemption does not help", "bold red")


def _nodes(explanation: PodExplanation) -> Table:
    """Return a row for each node: selected ones, others that fit by their scores, rejected ones.

    Many nodes with the same verdict have one row.
    """
    preemption = explanation["preemption"]
    table = _table("NODE", "VERDICT", "PLUGIN", "WHY", *(() if preemption is None else ("PREEMPTION",)))
    groups: dict[tuple[str, ...], list[list[Text]]] = {}
    for node, cells in (*_feasible_rows(explanation), *_rejected_rows(explanation)):
        row = [*cells, *(() if preemption is None else (_preemption_cell(preemption, node),))]
        groups.setdefault(tuple(cell.plain for cell in row[1:]), []).append(row)
    for rows in groups.values():
        if len(rows) <= _ALIKE_MAX:
            for row in rows:
                table.add_row(*row)
            continue
        _, verdict, plugin, why, *others = rows[0]
        table.add_row(Text(f"{len(rows)} nodes"), verdict, plugin, _with_amounts(why, explanation), *others)
    return table


def _with_amounts(why: Text, explanation: PodExplanation) -> Text:
    """Return a reason with the amounts of each resource of which the nodes have too little."""
    text = why.plain
    for each in explanation.get("shortages", ()):
        amounts = f"at most {each['mostFree']} free, {each['request']} needed"
        text = re.sub(rf"Insufficient {re.escape(each['resource'])}(?=;|$)", rf"\g<0> ({amounts})", text)
    return Text(text)


def _feasible_rows(explanation: PodExplanation) -> Iterator[tuple[str, list[Text]]]:
    scores = {score["node"]: score for score in explanation["scores"]}
    selected = explanation["selectedNodes"]

    def order(node: str) -> tuple[bool, int, str]:
        return (node not in selected, -scores[node]["total"] if node in scores else 0, node)

    for node in sorted(explanation["feasibleNodes"], key=order):
        is_selected = node in selected
        score = scores.get(node)
        verdict = "fits" if score is None else f"score {score['total']}"
        yield (
            node,
            [
                Text(node, "bold" if is_selected else ""),
                Text(f"{verdict}, selected", "bold green") if is_selected else Text(verdict, "green"),
                Text("-"),
                Text("" if score is None else _by_plugin(score)),
            ],
        )


def _by_plugin(score: NodeScore) -> str:
    return ", ".join(f"{plugin} {points}" for plugin, points in score["plugins"].items() if points)


def _rejected_rows(explanation: PodExplanation) -> Iterator[tuple[str, list[Text]]]:
    nominated = {each["node"]: each["pods"] for each in explanation["nominatedPods"]}
    for rejection in explanation["rejectedNodes"]:
        node, code = rejection["node"], rejection["code"]
        why = "; ".join(rejection["reasons"])
        if node in nominated:
            why += f" (nominated pods: {', '.join(nominated[node])})"
        style = "yellow" if code == "Unschedulable" else "red"
        yield node, [Text(node), Text(code, style), Text(rejection["plugin"]), Text(why)]


def _preemption_cell(preemption: Preemption, node: str) -> Text:
    candidate = next((each for each in preemption["candidates"] if each["node"] == node), None)
    if candidate is not None:
        text = f"evict {', '.join(candidate['victims'])}"
        if candidate["pdbViolations"]:
            text += f" ({candidate['pdbViolations']} violate a PodDisruptionBudget)"
        if node == preemption["nominatedNode"]:
            return Text(f"{text}, selected", "bold magenta")
        return Text(text, "magenta")
    rejection = next((each for each in preemption["rejectedNodes"] if each["node"] == node), None)
    return Text("-" if rejection is None else "; ".join(rejection["reasons"]))


def _remarks(explanation: PodExplanation) -> Iterator[Text]:
    preemption = explanation["preemption"]
    if explanation["message"]:
        message = explanation["message"]
        if preemption is not None and preemption["message"]:
            message += f" {preemption['message']}"
        yield Text.assemble(("event: ", "dim"), message)
    if "deferredResize" in explanation and explanation["deferredResize"]["kubeletMessage"]:
        yield Text.assemble(("kubelet: ", "dim"), explanation["deferredResize"]["kubeletMessage"])
    for change in explanation.get("helpfulChanges", ()):
        yield Text.assemble(("would help: ", "dim"), (f"--what-if '{change}'", "green"))
    if preemption is not None and len(preemption["equalNodes"]) > 1:
        names = ", ".join(preemption["equalNodes"])
        yield Text.assemble(("equal candidates for preemption: ", "dim"), names)
    nomination = explanation["nominatedNodeName"]
    if nomination["before"] != nomination["after"]:
        change = f"{nomination['before'] or 'none'} -> {nomination['after'] or 'none'}"
        yield Text.assemble(("nominatedNodeName: ", "dim"), change)
    if explanation["nominatedPods"]:
        pods = "; ".join(
            f"{each['node']}: {', '.join(each['pods'])}" for each in explanation["nominatedPods"]
        )
        yield Text.assemble(("nominated pods: ", "dim"), pods)
    if explanation["requeueEvents"]:
        yield Text.assemble(("requeued by: ", "dim"), ", ".join(explanation["requeueEvents"]))
