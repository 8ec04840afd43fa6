"""The tables of verbs and conditions: what is generated from them, and that one class is a whole verb."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import jsonschema
import pytest

from nominee.lab.scenario.acting.base import Action, Performed, Phase, ProcessView, Undoing
from nominee.lab.scenario.acting.stage import Stage
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.lab.scenario.conditions.table import CONDITIONS
from nominee.lab.scenario.fields.declared import Text
from nominee.lab.scenario.fields.parser import Parser
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.format import page, schema
from nominee.lab.scenario.format.documents import InvalidScenarioError
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.format.reading import read_text
from nominee.lab.scenario.observing.base import Condition, JsonObject, Observed
from nominee.lab.scenario.play.narration import Silent
from nominee.lab.scenario.play.runner import run
from nominee.lab.scenario.play.simulate import with_cluster
from nominee.lab.scenario.record.recorder import Recorder
from nominee.lab.scenario.result import Outcome, ScenarioResult
from nominee.lab.scenario.steps.table import VERBS
from nominee.machinery.api import kinds
from nominee.machinery.client.api_client import Client
from nominee.machinery.wire.values.scalars import Json
from nominee.simulation.simulation import Simulation

_PAGE = Path(__file__).parents[3] / "docs" / "scenarios.md"
_TEXT = """\
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: labels}
spec:
  cluster: {nodes: 1, without: [autoscaler, cloud, controllers]}
  steps:
  - label: {node: node-0, value: blue}
  - expect: {now: {labelled: {node: node-0, value: blue}}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label(Action):
    """A verb of this test: set a label of a node."""

    verb: ClassVar[str] = "label"
    row: ClassVar[str] = "`node`, `value`"
    undone_in: ClassVar[Phase | None] = Phase.OBJECTS

    about: ClassVar[str] = "Label a node."

    node: Text
    value: Text

    def check(self, parser: Parser, path: FieldPath, value: Mapping[str, Json]) -> None:
        if " " in self.value:
            parser.fault((*path, "value"), "a label has no spaces")

    def describe(self) -> str:
        return f"{self.node} is {self.value}"

    async def perform(self, stage: Stage) -> Performed:
        await self._set(stage, self.value)
        return Performed(text="done")

    async def undo(self, undoing: Undoing) -> None:
        await self._set(undoing.stage, None)

    async def _set(self, stage: Stage, value: str | None) -> None:
        patch = {"metadata": {"labels": {"colour": value}}}
        stored = await stage.call(lambda: stage.client.patch(kinds.NODE, self.node, "", patch))
        assert stored is not None
        await stage.until_seen(stored)

    @classmethod
    def record(cls, before: ProcessView, now: ProcessView) -> list[JsonObject]:
        return [{cls.verb: {"node": now.name, "value": now.last_exit}}] if now.last_exit == "blue" else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled(Condition):
    """A condition of this test: the label of a node."""

    key: ClassVar[str] = "labelled"
    row: ClassVar[str] = "`node`, `value`"

    about: ClassVar[str] = "A label."

    node: Text
    value: Text

    def describe(self) -> str:
        return f"the label of {self.node} is {self.value!r}"

    async def probe(self, cluster: ScenarioCluster) -> Observed:
        node = await cluster.client.get(kinds.NODE, self.node)
        label = node.metadata.labels.get("colour", "")
        return Observed(holds=label == self.value, text=f"it is {label!r}")


@pytest.fixture
def _with_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VERBS, Label.verb, Label)
    monkeypatch.setitem(CONDITIONS, Labelled.key, Labelled)


def test_the_published_schema_is_generated() -> None:
    jsonschema.Draft202012Validator.check_schema(schema.schema())
    published = schema.SCHEMA_FILE.read_text(encoding="utf-8")
    assert published == schema.text(), "write it again with `python -m nominee.lab.scenario.format.schema`"


@pytest.mark.parametrize("table", [page.step_table(), page.condition_table(), page.measure_table()])
def test_the_tables_of_the_page_are_generated(table: str) -> None:
    assert f"\n\n{table}\n\n" in _PAGE.read_text(encoding="utf-8"), (
        "print them again with `python -m nominee.lab.scenario.format.page`"
    )


@pytest.mark.parametrize("action", VERBS.values(), ids=VERBS)
def test_a_verb_with_a_phase_is_undone(action: type[Action]) -> None:
    assert (action.undone_in is None) == (action.undo is Action.undo)


@pytest.mark.parametrize("kind", CONDITIONS.values(), ids=CONDITIONS)
def test_a_condition_is_evaluated_or_asked(kind: type[Condition]) -> None:
    assert (kind.evaluate is Condition.evaluate) != (kind.probe is Condition.probe)


@pytest.mark.usefixtures("_with_label")
def test_a_class_and_a_row_are_a_verb_that_is_read() -> None:
    (scenario,) = read_text(_TEXT, "a.yaml")
    assert scenario.steps[0].action == Label(node="node-0", value="blue")
    for wrong, message in (
        ("{node: node-0}", "a.yaml:7: spec.steps[0].label: the field value is missing"),
        ("{node: node-0, value: a b}", "a.yaml:7: spec.steps[0].label.value: a label has no spaces"),
    ):
        with pytest.raises(InvalidScenarioError) as raised:
            read_text(_TEXT.replace("{node: node-0, value: blue}", wrong, 1), "a.yaml")
        assert str(raised.value) == message
    assert "| `label` | `node`, `value` |" in page.step_table()
    assert json.loads(schema.text())["$defs"]["step"]["properties"]["label"] == Label.schema()


def test_the_verb_is_unknown_without_its_row() -> None:
    with pytest.raises(InvalidScenarioError, match=r"spec\.steps\[0\]\.label: unknown field"):
        read_text(_TEXT, "a.yaml")


@pytest.mark.usefixtures("_with_label")
def test_a_class_and_a_row_are_a_verb_that_is_performed_described_and_undone() -> None:
    (scenario,) = read_text(_TEXT, "a.yaml")
    result, label = _played(scenario, clean_up=False)
    assert result.outcome is Outcome.PASSED, result.reason
    assert [(step.verb, step.name, step.observation) for step in result.steps] == [
        ("label", "node-0 is blue", "done"),
        ("expect", "the label of node-0 is 'blue'", "it is 'blue'"),
    ]
    assert label == "blue"
    assert _played(scenario, clean_up=True)[1] == ""


def _played(scenario: Scenario, *, clean_up: bool) -> tuple[ScenarioResult, str]:
    """Return the result in a simulation, and the node's label afterwards."""

    async def play(cluster: ScenarioCluster) -> tuple[ScenarioResult, str]:
        result = await run(scenario, cluster, Silent(), clean_up=clean_up)
        node = await cluster.client.get(kinds.NODE, "node-0")
        return result, node.metadata.labels.get("colour", "")

    return with_cluster(scenario.cluster, Simulation(1), play)


@pytest.mark.usefixtures("_with_label")
def test_a_class_and_a_row_are_a_verb_that_is_recorded() -> None:
    recorder = Recorder()
    view = ProcessView(name="scheduler", state="ready", pid=1)
    recorder.on_processes([view])
    changed = ProcessView(name="scheduler", state="ready", pid=1, last_exit="blue")
    assert recorder.on_processes([changed]) == [{"label": {"node": "scheduler", "value": "blue"}}]


_APPLIED_TWICE = """\
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: twice}
spec:
  cluster: {nodes: 1, without: [autoscaler, cloud, controllers]}
  steps:
  - apply: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "1"}}]
  - apply: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "2"}}]
  - expect: {now: {object: {kind: ConfigMap, name: a, jsonPath: {.data.x: "2"}}}}
"""


def test_apply_creates_an_object_whose_deletion_ends_before_its_patch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patch, deleted = Client.patch, []

    async def late(client: Client, kind: Any, name: str, namespace: str, body: Any, **options: Any) -> Any:
        if kind is kinds.CONFIG_MAP and name == "a":
            deleted.append(await client.delete(kind, name, namespace))
        return await patch(client, kind, name, namespace, body, **options)

    monkeypatch.setattr(Client, "patch", late)
    (scenario,) = read_text(_APPLIED_TWICE, "a.yaml")
    result, _ = _played(scenario, clean_up=False)
    assert result.outcome is Outcome.PASSED, result.reason
    assert len(deleted) == 1
