"""The actions: the command that each equals."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from nominee import command_group
from nominee.dashboard.actions import ActionError, Target, actions
from nominee.localcluster.plan import DEFAULT_DIRECTORY
from tests.lab.invariants.histories import pod

TABLE = {each.name: each for each in actions(["scheduler.bind.before"], ["cut"])}
POD = Target("Pod", "default", "a", pod("a", cpu="1"))
NODE, SCHEDULER = Target("Node", "", "n1"), Target(name="scheduler")
HERE = DEFAULT_DIRECTORY.absolute()


@pytest.mark.parametrize(
    ("name", "target", "fields", "want"),
    [
        ("create", Target(), {"manifest": "kind: Pod\n"}, "nominee create -f - <<'EOF'\nkind: Pod\nEOF"),
        ("verify", Target(), {}, "nominee verify"),
        ("delete", POD, {}, "nominee delete pod a -n default"),
        ("delete", POD, {"grace": "0"}, "nominee delete pod a -n default --grace-period 0"),
        (
            "resize",
            POD,
            {"cpu": "2"},
            "nominee patch pod a -n default --subresource resize -p "
            """'{"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}'""",
        ),
        ("drain", NODE, {}, "kubectl drain n1 --ignore-daemonsets --delete-emptydir-data --force"),
        ("uncordon", NODE, {}, """nominee patch node n1 -p '{"spec": {"unschedulable": null}}'"""),
        ("kill", SCHEDULER, {}, "nominee restart scheduler --kill"),
        ("stop", SCHEDULER, {}, "nominee stop scheduler"),
        ("start", SCHEDULER, {}, "nominee start scheduler"),
        ("pause", SCHEDULER, {}, "nominee pause scheduler"),
        ("resume", SCHEDULER, {}, "nominee resume scheduler"),
        (
            "failpoint",
            SCHEDULER,
            {"name": "scheduler.bind.before", "action": "sleep(100)"},
            "nominee failpoint scheduler scheduler.bind.before 'sleep(100)'",
        ),
        (
            "fault",
            SCHEDULER,
            {"action": "cut", "to": "apiserver", "method": "", "kind": "Pod"},
            "nominee fault scheduler cut --to apiserver --kind Pod",
        ),
        (
            "gate",
            SCHEDULER,
            {"gate": "A", "value": "true"},
            "nominee restart scheduler --feature-gates=A=true",
        ),
    ],
)
def test_the_command_of_an_action(name: str, target: Target, fields: dict[str, str], want: str) -> None:
    command = TABLE[name].command(target, fields)
    assert command.text(HERE) == want
    elsewhere = command.text(Path("/x"))
    assert (
        elsewhere == want
        if want.startswith("kubectl")
        else elsewhere.startswith("nominee") and "--dir /x" in elsewhere
    )
    if not command.kubectl:
        known = command_group.nominee.get_command(click.Context(command_group.nominee), command.arguments[0])
        assert known is not None
        known.make_context(command.arguments[0], list(command.arguments[1:]))


def test_every_action_is_in_the_table_above() -> None:
    marks = getattr(test_the_command_of_an_action, "pytestmark")  # noqa: B009  # mypy knows no such attribute
    assert {each[0] for each in marks[0].args[1]} == set(TABLE)


def test_a_resize_changes_limits_too_where_the_container_has_some() -> None:
    limited = pod("a", cpu="1")
    limited.spec.containers[0].resources.limits["cpu"].string = "1"
    command = TABLE["resize"].command(Target("Pod", "default", "a", limited), {"cpu": "2", "memory": "1Gi"})
    (container,) = json.loads(command.arguments[-1])["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "2"}}


@pytest.mark.parametrize(
    ("name", "target", "fields"),
    [
        ("create", Target(), {"manifest": " "}),
        ("create", POD, {"manifest": "kind: Pod"}),
        ("delete", NODE, {}),
        ("delete", Target(), {}),
        ("delete", POD, {"grace": "soon"}),
        ("resize", POD, {}),
        ("resize", POD, {"cpu": "2", "container": "x"}),
        ("resize", Target("Pod", "default", "gone"), {"cpu": "2"}),
        ("drain", SCHEDULER, {}),
        ("kill", POD, {}),
        ("failpoint", SCHEDULER, {"name": "--help", "action": "off"}),
        ("failpoint", SCHEDULER, {"name": "x"}),
        ("fault", SCHEDULER, {"action": "cut", "to": "-x"}),
        ("fault", SCHEDULER, {}),
        ("gate", SCHEDULER, {"gate": "A", "value": "maybe"}),
        ("gate", SCHEDULER, {"gate": "A\nB", "value": "true"}),
    ],
)
def test_an_action_that_cannot_be_made_is_refused(name: str, target: Target, fields: dict[str, str]) -> None:
    with pytest.raises(ActionError):
        TABLE[name].command(target, fields)
