"""Mistakes in a matrix are reported with line, field and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from nominee.lab.scenario.format.documents import InvalidScenarioError
from tests.lab.skew.matrices import CLEARING, GATE, PATH, planned

_ANSWER = """\
  answers:
  - kep: 5278
    section: Version Skew Strategy
    answer: An older API server does not clear the field.
"""


_ANSWERED = CLEARING + _ANSWER
_GATE = "when: {apiserver: {gates: {Clearing"
_POINT = "{scheduler: {NominatedNodeNameForExpectation: true}}}\n      - {v"
_LATER_POINTS = PATH[PATH.index('      - {version: "1.35"}') : PATH.index("    probe:")]
_NAME = "  - name: path\n"
_SECTION = "    section: Version Skew Strategy\n"


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        (CLEARING, "versions:", "version:", "spec.rows[0].version: unknown field; did you mean versions?"),
        (CLEARING, '"1.33"', '"1.31"', "versions.apiserver[0]: emulation version 1.31 is not between"),
        (CLEARING, _GATE, "when: {apiserver: {gates: {Claring", "unknown feature gate"),
        (CLEARING, "always", "allways", "spec.steps[2].expect.allways: unknown field"),
        (CLEARING, "kind: Pod, name: p, cond", "kind: Pood, name: p, cond", "unknown kind 'Pood'"),
        (PATH, _NAME, f"{_NAME}    after: [never]\n", "no step named 'never'; its steps are: before, after"),
        (PATH, _NAME, f"{_NAME}    scenario: x.yaml\n", "give scenario (a file), or cluster and steps"),
        (PATH, _POINT, "{kubelet: {}}}\n      - {v", "kubelet is not in the path's order"),
        (_ANSWERED, _SECTION, _SECTION, "give rows, or the reason why it is untested"),
        (_ANSWERED, _SECTION, f"{_SECTION}    rows: [x]\n", "there is no row 'x'; known are clearing"),
        (
            _ANSWERED,
            _SECTION,
            f"{_SECTION}    rows: [clearing]\n    shows: [x]\n",
            "no case 'x' in these rows; known are cleared, kept",
        ),
        (_ANSWERED, "kep: 5278\n    section: Version", "kep: 1\n    section: Version", "no row has kep: 1"),
        (CLEARING, '"1.33", "1.35"', '"1.35", "1.35"', "has non-unique elements"),
        (CLEARING, "{apiserver: [{}", "{kubelet: [{}", f"{GATE} is not a gate of kubelet, but of apiserver"),
        (
            CLEARING,
            "when: {apiserver: {",
            'when: {apiserver: {atLeast: "1.99", ',
            "atLeast: emulation version 1.99",
        ),
        (CLEARING, "name: kept", "name: cleared", "cases[1].name: cleared is the name of several cases"),
        (
            CLEARING,
            f"      when: {{apiserver: {{gates: {{{GATE}: true}}}}}}\n",
            "",
            "cases[1]: never applies",
        ),
        (CLEARING, "without: [autoscaler]", "without: [scheduler]", "cluster is without scheduler"),
        (PATH, "without: [autoscaler]", "without: [scheduler]", "paths[0].order[1]: the row's cluster is"),
        (
            CLEARING,
            "nodes: 1",
            "nodes: 1, components: {scheduler: {command: [kube-scheduler]}}",
            "versions.scheduler: scheduler is another program here",
        ),
        (PATH, '"1.34", gates: {s', '"1.33", gates: {s', "row path: no combination is possible: cannot set"),
        (PATH, _LATER_POINTS, "", "points: needs at least 2 items"),
        (
            PATH,
            _NAME,
            "  - name: other\n    scenario: nowhere.yaml\n" + _NAME,
            "spec.rows[0].scenario: ",
        ),
    ],
)
def test_mistakes(tmp_path: Path, text: str, old: str, new: str, message: str) -> None:
    with pytest.raises(InvalidScenarioError) as caught:
        planned(tmp_path, text.replace(old, new, 1), full=True)
    assert message in str(caught.value)
    assert str(tmp_path / "matrix.yaml") in str(caught.value)
