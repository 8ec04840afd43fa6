"""Steps and conditions as sentences, for steps without a name."""

from __future__ import annotations

from collections.abc import Mapping

from nominee.lab.scenario.format.condition import (
    AllOf,
    AnyOf,
    Comparison,
    ComponentCondition,
    Condition,
    DebugCondition,
    EventCondition,
    FailpointCondition,
    MetricCondition,
    ObjectCondition,
    QueueCondition,
)
from nominee.lab.scenario.format.model import (
    Action,
    Apply,
    ArmFailpoint,
    ComponentOptions,
    Control,
    Cordon,
    DamageCheckpoint,
    Delete,
    Drain,
    Expect,
    InjectFault,
    Mode,
    Patch,
    ResizeGroup,
    ShiftClock,
    Wait,
)
from nominee.lab.scenario.play.evaluation import described


def action_text(action: Action) -> str:
    """Return an action as a sentence."""
    match action:
        case Apply():
            objects = ", ".join(
                f"{str(each['kind']).lower()}/{each['metadata'].get('name', '')}" for each in action.manifests
            )
            return f"apply {objects}"
        case Patch():
            subresource = f" ({action.subresource})" if action.subresource else ""
            return f"patch {action.kind.lower()}/{action.name or action.selector}{subresource}"
        case Delete():
            return f"delete {action.kind.lower()}/{action.name or action.selector}"
        case Wait():
            return f"until {condition_text(action.condition)}"
        case Expect(mode=Mode.NOW):
            return condition_text(action.condition)
        case Expect(mode=Mode.EVENTUALLY):
            return f"eventually {condition_text(action.condition)}"
        case Expect():
            return f"for {action.seconds:g} s {action.mode.value} {condition_text(action.condition)}"
        case Control():
            options = _options_text(action.options)
            return f"{action.verb.value} {action.component}{options}"
        case ArmFailpoint():
            return f"failpoint {action.name} is {action.action}"
        case InjectFault():
            names = {"to": action.to, "method": action.method, "kind": action.kind}
            named = "".join(f" {name} {value}" for name, value in names.items() if value != "*")
            return f"calls of {action.component}{named or ' to all'}: {action.action}"
        case ShiftClock():
            return f"the clock of {action.component} is shifted by {action.offset_seconds:+g} s"
        case Drain():
            return f"drain node {action.node}"
        case Cordon():
            return f"{'cordon' if action.unschedulable else 'uncordon'} node {action.node}"
        case ResizeGroup(delete=True):
            return f"the nodes of group {action.group} are deleted"
        case ResizeGroup():
            return f"{action.increase} node(s) of group {action.group} are created"
        case DamageCheckpoint():
            return f"{action.how} the checkpoint of {action.node}"


def _options_text(options: ComponentOptions) -> str:
    parts = [f"version {options.emulated_version}"] if options.emulated_version else []
    parts += [f"{gate}={str(value).lower()}" for gate, value in options.feature_gates.items()]
    parts += options.arguments
    parts += [f"{name}={action}" for name, action in options.failpoints.items()]
    return f" with {', '.join(parts)}" if parts else ""


def condition_text(condition: Condition) -> str:
    """Return a condition as a clause."""
    match condition:
        case ObjectCondition():
            return _object_text(condition)
        case EventCondition():
            about = f" about {condition.kind or 'object'} {condition.name}" if condition.name else ""
            message = f" whose message {described(condition.message)}" if condition.message else ""
            return f"an event {condition.reason}{about}{message}{_count(condition.count)}"
        case MetricCondition():
            labels = ",".join(f'{name}="{value}"' for name, value in condition.labels.items())
            name = f"{condition.name}{{{labels}}}" if labels else condition.name
            return f"{condition.component}'s {name} {described(condition.value)}"
        case QueueCondition(pod=""):
            return f"pods in the {condition.queue} queue{_count(condition.count)}"
        case QueueCondition():
            place = f"the {condition.queue} queue" if condition.queue else "no queue"
            return f"pod {condition.pod} is in {place}"
        case FailpointCondition():
            counts = {"tasks waiting": condition.waiting, "hits": condition.hits, "actions": condition.fired}
            texts = [f"{name} {described(value)}" for name, value in counts.items() if value is not None]
            return f"failpoint {condition.name}: {', '.join(texts)}"
        case ComponentCondition():
            state = f" is {condition.state}" if condition.state else ""
            restarts = f" restarts {described(condition.restarts)}" if condition.restarts is not None else ""
            return f"{condition.name}{state}{restarts}"
        case DebugCondition():
            return f"{condition.component}{condition.path}: {_paths(condition.json_path)}"
        case AllOf():
            return " and ".join(condition_text(each) for each in condition.conditions)
        case AnyOf():
            return " or ".join(condition_text(each) for each in condition.conditions)


def _object_text(condition: ObjectCondition) -> str:
    subject = f"{condition.kind.lower()}"
    if condition.name:
        subject += f" {condition.name}"
    elif condition.selector:
        subject += f" with {condition.selector}"
    parts = [text if not text.startswith("!") else f"no {text[1:]}" for text in condition.conditions]
    if condition.json_path:
        parts.append(_paths(condition.json_path))
    properties = f" has {', '.join(parts)}" if parts else " exists"
    return f"{subject}{properties}{_count(condition.count)}"


def _paths(json_path: Mapping[str, Comparison]) -> str:
    return ", ".join(f"{path} {described(comparison)}" for path, comparison in json_path.items())


def _count(count: Comparison | None) -> str:
    if count is None:
        return ""
    if count.has_equal and count.equal == 0:
        return ": no object"
    return f" (count {described(count)})"
