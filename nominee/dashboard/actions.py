"""The actions of the page: each is a command that a person could type, which is shown and then run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import anyio

from nominee.localcluster.plan import directory_hint
from nominee.machinery.api.pb import core
from nominee.machinery.process import child
from nominee.machinery.wire.values.scalars import Json

SECONDS_MAX: Final = 120.0
OUTPUT_MAX: Final = 64 << 10
_CLI: Final = "nominee.cli"
_DRAIN: Final = "nominee.dashboard.drain"

On = Literal["cluster", "Pod", "Node", "component"]
Fields = Mapping[str, str]


class ActionError(ValueError):
    """The action cannot be made of its fields; the message is for the person."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field that the person fills in."""

    name: str
    label: str
    kind: Literal["text", "number", "choice", "yaml"] = "text"
    value: str = ""
    choices: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Json]:
        """Return the field as the page reads it."""
        return {
            "name": self.name,
            "label": self.label,
            "kind": self.kind,
            "value": self.value,
            "choices": list(self.choices),
        }


@dataclass(frozen=True, slots=True)
class Target:
    """The target of an action: an object, a process, or the cluster with "". `pod` is the present one."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    pod: core.Pod | None = None

    @property
    def on(self) -> str:
        """Return the value of `Action.on` that fits."""
        return self.kind or ("component" if self.name else "cluster")


@dataclass(frozen=True, slots=True)
class Command:
    """A command: arguments of `nominee`, or of another module, and its input."""

    arguments: tuple[str, ...]
    input: str = ""
    module: str = _CLI
    kubectl: str = ""
    """The equal command of kubectl, where `nominee` has none."""

    def text(self, directory: Path) -> str:
        """Return the command as a person types it."""
        line = self.kubectl or f"nominee {shlex.join(self.arguments)}"
        text = f"{line}{directory_hint(directory)}" if not self.kubectl else line
        return f"{text} <<'EOF'\n{self.input.rstrip()}\nEOF" if self.input else text


@dataclass(frozen=True, slots=True)
class Action:
    """An action on a kind of target."""

    name: str
    title: str
    on: On
    make: Callable[[Target, Fields], Command]
    fields: tuple[Field, ...] = ()

    def as_json(self) -> dict[str, Json]:
        """Return the action as the page reads it."""
        fields: list[Json] = [field.as_json() for field in self.fields]
        return {"name": self.name, "title": self.title, "on": self.on, "fields": fields}

    def command(self, target: Target, fields: Fields) -> Command:
        """Return the command. Raises: ActionError."""
        if target.on != self.on:
            raise ActionError(f"{self.name} is an action on {self.on}, not on {target.on}")
        for field in self.fields:
            value = fields.get(field.name, "")
            if field.kind != "yaml" and (value.startswith("-") or "\n" in value or "\0" in value):
                raise ActionError(f"{field.label}: {value!r} is no value")
        return self.make(target, fields)


def _create(_: Target, fields: Fields) -> Command:
    manifest = fields.get("manifest", "")
    if not manifest.strip():
        raise ActionError("write a manifest")
    return Command(("create", "-f", "-"), input=manifest)


def _verify(_: Target, __: Fields) -> Command:
    return Command(("verify",))


def _resize(target: Target, fields: Fields) -> Command:
    """Change requests, and limits where the container has some: its QoS class must stay."""
    containers = list(target.pod.spec.containers) if target.pod is not None else []
    name = fields.get("container", "") or (containers[0].name if containers else "")
    container = next((each for each in containers if each.name == name), None)
    if container is None:
        raise ActionError(f"the pod has no container {name!r}")
    wanted = {each: fields[each] for each in ("cpu", "memory") if fields.get(each)}
    if not wanted:
        raise ActionError("give cpu or memory")
    resources = {"requests": wanted}
    limited = {each: value for each, value in wanted.items() if each in container.resources.limits}
    if limited:
        resources["limits"] = limited
    patch = json.dumps({"spec": {"containers": [{"name": name, "resources": resources}]}})
    where = ("patch", "pod", target.name, "-n", target.namespace)
    return Command((*where, "--subresource", "resize", "-p", patch))


def _delete(target: Target, fields: Fields) -> Command:
    grace = fields.get("grace", "")
    if grace and not grace.isdecimal():
        raise ActionError("seconds of grace are a whole number")
    more = ("--grace-period", grace) if grace else ()
    return Command(("delete", "pod", target.name, "-n", target.namespace, *more))


def _drain(target: Target, _: Fields) -> Command:
    kubectl = f"kubectl drain {shlex.quote(target.name)} --ignore-daemonsets --delete-emptydir-data --force"
    return Command((target.name,), module=_DRAIN, kubectl=kubectl)


def _uncordon(target: Target, _: Fields) -> Command:
    return Command(("patch", "node", target.name, "-p", '{"spec": {"unschedulable": null}}'))


def _process(verb: str, *options: str) -> Callable[[Target, Fields], Command]:
    return lambda target, _: Command((verb, target.name, *options))


def _failpoint(target: Target, fields: Fields) -> Command:
    name, action = fields.get("name", ""), fields.get("action", "")
    if not name or not action:
        raise ActionError("choose a failpoint and an action")
    return Command(("failpoint", target.name, name, action))


def _fault(target: Target, fields: Fields) -> Command:
    action = fields.get("action", "")
    if not action:
        raise ActionError("choose an action")
    named = ((f"--{each}", fields[each]) for each in ("to", "method", "kind") if fields.get(each))
    return Command(("fault", target.name, action, *(word for pair in named for word in pair)))


def _gate(target: Target, fields: Fields) -> Command:
    gate, value = fields.get("gate", ""), fields.get("value", "")
    if not gate or value not in _BOOLEANS:
        raise ActionError("name a gate, and true or false")
    return Command(("restart", target.name, f"--feature-gates={gate}={value}"))


_BOOLEANS: Final = ("true", "false")
_MANIFEST: Final = """apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec:
  containers:
  - name: web
    image: app
    resources: {requests: {cpu: 500m, memory: 256Mi}}
"""


def actions(failpoints: Sequence[str], fault_actions: Sequence[str]) -> list[Action]:
    """Return all actions; the arguments are the choices of those that have some."""
    quantities = (Field("cpu", "CPU"), Field("memory", "Memory"))
    return [
        Action(
            "create",
            "Create objects",
            "cluster",
            _create,
            (Field("manifest", "Manifest", "yaml", _MANIFEST),),
        ),
        Action("verify", "Check the invariants", "cluster", _verify),
        Action("resize", "Resize", "Pod", _resize, (Field("container", "Container (first)"), *quantities)),
        Action("delete", "Delete", "Pod", _delete, (Field("grace", "Grace in seconds", "number"),)),
        Action("drain", "Drain", "Node", _drain),
        Action("uncordon", "Uncordon", "Node", _uncordon),
        Action("kill", "Kill and start again", "component", _process("restart", "--kill")),
        Action("stop", "Stop", "component", _process("stop")),
        Action("start", "Start", "component", _process("start")),
        Action("pause", "Pause", "component", _process("pause")),
        Action("resume", "Resume", "component", _process("resume")),
        Action(
            "failpoint",
            "Arm a failpoint",
            "component",
            _failpoint,
            (
                Field("name", "Failpoint", "choice", choices=tuple(failpoints)),
                Field("action", "Action (off, crash, pause, sleep(MS), error(503))", value="crash"),
            ),
        ),
        Action(
            "fault",
            "Set a fault of calls",
            "component",
            _fault,
            (
                Field("action", "Action", "choice", "cut", tuple(fault_actions)),
                Field("to", "To"),
                Field("method", "Method"),
                Field("kind", "Kind"),
            ),
        ),
        Action(
            "gate",
            "Set a feature gate",
            "component",
            _gate,
            (Field("gate", "Gate"), Field("value", "Value", "choice", "true", _BOOLEANS)),
        ),
    ]


async def run(command: Command, directory: Path) -> tuple[bool, str]:
    """Run a command on the cluster of a directory; return whether it succeeded, and its output."""
    argv = child.command(command.module, *command.arguments, "--dir", str(directory))
    with anyio.move_on_after(SECONDS_MAX):
        result = await anyio.run_process(argv, input=command.input.encode(), check=False, stderr=-2)
        return result.returncode == 0, result.stdout[:OUTPUT_MAX].decode("utf-8", "replace").strip()
    return False, f"the command has not ended after {SECONDS_MAX:g} s, and was killed"
