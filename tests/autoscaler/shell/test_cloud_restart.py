"""An autoscaler whose cloud is restarted, and serves on another port from then on; in a simulation."""

from __future__ import annotations

from nominee.lab.scenario.format.reading import read_text
from nominee.lab.scenario.play.simulate import simulate
from nominee.lab.scenario.result import Outcome

SCENARIO = """
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: cloud-restarts}
spec:
  cluster:
    nodes: 0
    nodeGroups: [{name: pool, min: 0, max: 2, target: 0, template: {cpu: "2", memory: 4Gi, pods: 110}}]
    components: {autoscaler: {args: ["--scan-interval=1s"]}}
  steps:
    - kill: cloud
    - start: cloud
    - apply: {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: app}]}}
    - expect: {eventually: {object: {kind: Pod, name: p, condition: Ready=True}}, seconds: 30}
"""


def test_it_follows_the_cloud_to_its_new_address() -> None:
    (scenario,) = read_text(SCENARIO, "cloud.yaml")
    result = simulate(scenario, 1)
    assert (result.outcome, result.reason) == (Outcome.PASSED, "")
