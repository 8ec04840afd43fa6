"""`nominee explain` as text: nodes that are alike have one row."""

from __future__ import annotations

from pathlib import Path

from tests.nominee.explain.test_command import explanation, run

PENDING = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: c, resources: {requests: {cpu: "2"}}}]}
"""


def test_many_nodes_that_are_rejected_alike_have_one_row(tmp_path: Path) -> None:
    path = tmp_path / "many.yaml"
    nodes = [
        f"{{apiVersion: v1, kind: Node, metadata: {{name: n{number}}}, "
        f"status: {{allocatable: {{cpu: {number}00m, memory: 4Gi, pods: 10}}}}}}"
        for number in range(10, 16)
    ]
    path.write_text("\n---\n".join([*nodes, PENDING]))
    answer = run("-f", str(path), "--pod", "web")
    rows = [line.split("   ") for line in answer.stdout.splitlines()]
    assert rows[2][0].strip() == "6 nodes"
    assert "Insufficient cpu (at most 1.5 free, 2 needed)" in answer.stdout
    found = explanation("-f", str(path), "--pod", "web")
    assert found["shortages"] == [{"resource": "cpu", "nodeCount": 6, "mostFree": "1.5", "request": "2"}]
    assert found["helpfulChanges"] == ["node n15 +500m cpu", "pod default/web cpu=1500m"]


def test_many_feasible_nodes_that_are_alike_have_one_row(tmp_path: Path) -> None:
    path = tmp_path / "many.yaml"
    sizes = [4] * 12 + [6] * 2 + [2] * 4
    nodes = [
        f"{{apiVersion: v1, kind: Node, metadata: {{name: n{number:02}}}, "
        f"status: {{allocatable: {{cpu: {size}, memory: 4Gi, pods: 10}}}}}}"
        for number, size in enumerate(sizes)
    ]

    def shown() -> tuple[str, list[str]]:
        headline, _, *rows = run("-f", str(path), "--pod", "web").stdout.strip().splitlines()
        return headline, rows

    path.write_text("\n---\n".join([*nodes, PENDING.replace('"2"', "500m")]))
    headline, rows = shown()
    assert "goes to one of n12, n13, chosen at random" in headline
    assert [row.split("   ")[0] for row in rows] == ["n12", "n13", "12 nodes", "4 nodes"]
    path.write_text("\n---\n".join([*nodes[:12], PENDING]))
    headline, rows = shown()
    assert "goes to one of n00, n01, n02, n03, n04, n05, n06, n07 and 4 more, chosen at random" in headline
    (row,) = rows
    assert row.startswith("12 nodes   score ")
    assert ", selected" in row
    assert len(explanation("-f", str(path), "--pod", "web")["selectedNodes"]) == 12
