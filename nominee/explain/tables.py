"""A verdict for a person: what happens to the pod, then node by node why, then what would change it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nominee.explain.verdict import Preemption, Verdict

_MODES = {None: "is kept as it is", "": "is cleared"}


def render(verdict: Verdict) -> RenderableType:
    """The whole page of one pod."""
    parts: list[RenderableType] = [_headline(verdict)]
    if verdict.feasible or verdict.rejected:
        parts.append(_nodes(verdict))
    parts += _remarks(verdict)
    return Group(*parts)


def _headline(verdict: Verdict) -> Text:
    pod = verdict.pod
    text = Text.assemble((str(pod.key), "bold"), f"  priority {pod.priority}  ")
    if verdict.gate is not None:
        return text.append(f"is not tried: {'; '.join(verdict.gate.reasons)}", "yellow")
    if not verdict.feasible:
        return text.append("fits nowhere", "bold red")
    names = ", ".join(verdict.selected)
    if verdict.takes_nomination:
        return text.append(f"goes to {names}, its nominated node; other nodes are not compared", "bold green")
    if len(verdict.selected) > 1:
        return text.append(f"goes to one of {names}, by chance among equals", "bold green")
    return text.append(f"goes to {names}", "bold green")


def _nodes(verdict: Verdict) -> Table:
    preempts = verdict.preemption is not None and verdict.gate is None and bool(verdict.rejected)
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="")
    for name in ("NODE", "VERDICT", "PLUGIN", "WHY"):
        table.add_column(name, no_wrap=name != "WHY", overflow="fold")
    if preempts:
        table.add_column("PREEMPTION", overflow="fold")
    for node in _in_order(verdict):
        cells = _cells(verdict, node)
        if preempts and verdict.preemption is not None:
            cells.append(_preemption_cell(verdict.preemption, node))
        table.add_row(*cells)
    return table


def _in_order(verdict: Verdict) -> list[str]:
    """The chosen node first, then others that fit by their scores, then the rejected ones by name."""
    totals = {node: sum(by_plugin.values()) for node, by_plugin in verdict.scores.items()}
    feasible = sorted(
        verdict.feasible, key=lambda node: (node not in verdict.selected, -totals.get(node, 0), node)
    )
    return feasible + sorted(verdict.rejected)


def _cells(verdict: Verdict, node: str) -> list[Text]:
    if node in verdict.rejected:
        rejection = verdict.rejected[node]
        style = "yellow" if rejection.code == "Unschedulable" else "red"
        why = "; ".join(rejection.reasons)
        if node in verdict.held:
            why += f" (room is kept for {', '.join(verdict.held[node])})"
        return [Text(node), Text(rejection.code, style), Text(rejection.plugin), Text(why)]
    chosen = node in verdict.selected
    scores = verdict.scores.get(node, {})
    total = f"score {sum(scores.values())}" if scores else "fits"
    parts = ", ".join(f"{plugin} {score}" for plugin, score in sorted(scores.items()) if score)
    return [
        Text(node, "bold" if chosen else ""),
        Text(f"{total}, chosen" if chosen else total, "bold green" if chosen else "green"),
        Text("-"),
        Text(parts),
    ]


def _preemption_cell(preemption: Preemption, node: str) -> Text:
    for candidate in preemption.candidates:
        if candidate.node == node:
            text = f"evict {', '.join(str(victim.key) for victim in candidate.victims)}"
            if candidate.pdb_violations:
                text += f" ({candidate.pdb_violations} against a PodDisruptionBudget)"
            style = "bold magenta" if node == preemption.node else "magenta"
            return Text(f"{text}, chosen" if node == preemption.node else text, style)
    failure = preemption.failures.get(node)
    return Text("-" if failure is None else "; ".join(failure.reasons))


def _remarks(verdict: Verdict) -> Iterator[Text]:
    preemption = verdict.preemption
    if verdict.message:
        said = preemption.message if preemption is not None else ""
        yield Text.assemble(("event: ", "dim"), f"{verdict.message} {said}".rstrip())
    if preemption is not None and verdict.gate is None:
        if len(preemption.best) > 1:
            yield Text.assemble(("equally good for preemption: ", "dim"), ", ".join(preemption.best))
        own = verdict.pod.pod.status.nominatedNodeName
        if own and preemption.nomination != own:
            becomes = _MODES.get(preemption.nomination, f"becomes {preemption.nomination}")
            yield Text.assemble(("nomination: ", "dim"), f"{own} {becomes}")
    held = [f"{node} for {', '.join(pods)}" for node, pods in sorted(verdict.held.items())]
    if held:
        yield Text.assemble(("nominated room: ", "dim"), "; ".join(held))
    if verdict.wakers:
        yield Text.assemble(("tried again after: ", "dim"), ", ".join(verdict.wakers))
