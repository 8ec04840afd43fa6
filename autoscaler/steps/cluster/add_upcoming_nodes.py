"""Step: add placeholders of upcoming nodes to the snapshot. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from nominee.autoscaler.loop_context import LoopContext
from nominee.autoscaler.options import Compat
from nominee.autoscaler.planning.snapshot.template_node import fresh_node_info
from nominee.autoscaler.state import AutoscalerState
from nominee.machinery.api.pb import core


def add_upcoming_nodes(state: AutoscalerState, context: LoopContext) -> None:
    """Add a placeholder for each upcoming node, and remove the upcoming nodes that have registered."""
    counts, registered = state.registry.upcoming_nodes(state.view.groups, context.result.at.monotonic)
    placeholders: dict[str, list[str]] = {}
    for group, count in counts.items():
        template = context.templates.get(group)
        if template is None:
            continue
        for number in range(count):
            info = fresh_node_info(template, f"upcoming-{number}", upcoming=True)
            context.snapshot.add_node(info)
            placeholders.setdefault(group, []).append(info.name)
    upcoming = set(registered)
    context.nodes = [node for node in context.nodes if node.metadata.name not in upcoming]
    for name in registered:
        if context.snapshot.get(name) is None:
            continue
        pods = context.snapshot.remove_node(name)
        if state.options.compat is Compat.FIXED:
            names = placeholders.get(state.view.group_of_node.get(name, ""), [])
            _move_nominated(context, pods, names.pop(0) if names else "")


def _move_nominated(context: LoopContext, pods: Sequence[core.Pod], placeholder: str) -> None:
    """H3: move pods nominated to a node that is not ready yet to its placeholder.

    Without a placeholder they are pending.
    """
    for pod in pods:
        if not pod.spec.nodeName and not context.snapshot.force_add_pod(pod, placeholder):
            context.pods.unschedulable.append(pod)
