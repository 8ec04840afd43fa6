"""Matrices for tests."""

from __future__ import annotations

from pathlib import Path

from nominee.lab.skew.matrix.model import Matrix
from nominee.lab.skew.matrix.planning import MatrixPlan, plan
from nominee.lab.skew.matrix.reading import read_matrix

HEADER = """\
apiVersion: skew.nominee.dev/v1alpha1
kind: SkewMatrix
metadata: {name: test, title: a test}
spec:
  rows:
"""
GATE = "ClearingNominatedNodeNameAfterBinding"
CLEARING = f"""\
  - name: clearing
    kep: 5278
    section: KEP-5278, Binding
    cluster: {{without: [autoscaler], nodes: 1}}
    versions: {{apiserver: ["1.33", "1.35", "1.36"], scheduler: ["1.34", "1.35"]}}
    gates: {{apiserver: [{{}}, {{{GATE}: false}}]}}
    steps:
    - name: a pod
      apply:
        apiVersion: v1
        kind: Pod
        metadata: {{name: p}}
        spec: {{containers: [{{name: c, image: app}}]}}
    cases:
    - name: cleared
      when: {{apiserver: {{gates: {{{GATE}: true}}}}}}
      see: the bound pod has no nominatedNodeName
      steps:
      - wait: {{object: {{kind: Pod, name: p, condition: PodScheduled=True}}}}
      - expect:
          always: {{object: {{kind: Pod, name: p, jsonPath: {{.status.nominatedNodeName: null}}}}}}
          seconds: 1
    - name: kept
      see: the bound pod keeps it
      steps:
      - expect: {{eventually: {{object: {{kind: Pod, name: p, condition: PodScheduled=True}}}}}}
"""
PATH = """\
  - name: path
    kep: 5278
    cluster: {without: [autoscaler], nodes: 1}
    steps:
    - name: before
      wait: {object: {kind: Node, name: node-0, condition: Ready=True}}
    - name: after
      wait: {object: {kind: Node, name: node-0, condition: Ready=True}}
    paths:
    - name: up and down
      order: [apiserver, scheduler]
      points:
      - {version: "1.34", gates: {scheduler: {NominatedNodeNameForExpectation: true}}}
      - {version: "1.35"}
      - {version: "1.34", gates: {scheduler: {NominatedNodeNameForExpectation: false}}}
    probe:
      steps:
      - wait: {object: {kind: Node, name: node-0, condition: Ready=True}}
        save: {"NODE_${STAGE}": .metadata.name}
      cases:
      - name: written
        when: {scheduler: {gates: {NominatedNodeNameForExpectation: true}}}
        see: it is written
        steps:
        - wait: {object: {kind: Node, name: "${NODE_${STAGE}}"}}
      - name: missing
        see: it is not written
        steps: []
"""


def matrix(folder: Path, text: str) -> Matrix:
    """Return the matrix of some rows."""
    file = folder / "matrix.yaml"
    file.write_text(HEADER + text, encoding="utf-8")
    return read_matrix(file)


def planned(folder: Path, text: str, *, full: bool = False, only: str = "") -> MatrixPlan:
    """Return the plan of some rows."""
    return plan(matrix(folder, text), full=full, only=only)
