"""KEP-5278, story 2: the scheduler dies after it nominated a node, and a better node appears meanwhile.

The claim is unchanged when the scheduler dies, so there is no selected-node annotation that pins the pod: the
next scheduler knows only nominatedNodeName. A variant kills the scheduler while the provisioner works.
"""

from __future__ import annotations

from machinery.api import kinds
from nominee.demo.machines import Machines
from nominee.demo.stage import Stage

SMALL, BIG = "demo-small", "demo-big"
_GATE = "NominatedNodeNameForExpectation"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
# Between the nomination and the first write to the claim.
_POINT = "scheduler.prebind.before"
_MANIFESTS = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: %(name)s}
provisioner: delayed.nominee.dev
parameters: {delay: %(delay)s}
volumeBindingMode: WaitForFirstConsumer
reclaimPolicy: Delete
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %(name)s}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: %(name)s
  resources: {requests: {storage: 1Gi}}
---
apiVersion: v1
kind: Pod
metadata: {name: %(name)s}
spec:
  terminationGracePeriodSeconds: 1
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - {key: nominee.dev/node-group, operator: In, values: [demo-small, demo-big]}
  containers:
  - {name: c, image: app, resources: {requests: {cpu: "2", memory: 512Mi}}}
  volumes: [{name: data, persistentVolumeClaim: {claimName: %(name)s}}]
"""


async def play(stage: Stage, *, gate: bool) -> None:
    """Kill the scheduler between nomination and PreBind, add a bigger node, and start the scheduler again."""
    name = "resumes" if gate else "forgets"
    gates = f"--feature-gates={_GATE}={str(gate).lower()}"
    machines = Machines(stage)
    small = (await machines.order(SMALL))[0].metadata.name
    await stage.restart("scheduler", gates)
    await stage.failpoint("scheduler", _POINT, "pause")
    stage.narrator.act(f"pod {name}, with a claim; the scheduler is stopped at {_POINT} ({_GATE}={gate})")
    await stage.apply(_MANIFESTS % {"name": name, "delay": "200ms"})
    await stage.until(f"the scheduler is at {_POINT}", lambda: stage.waits_at("scheduler", _POINT))
    if gate:
        await stage.until("the nomination is seen", lambda: stage.pod(name).status.nominatedNodeName)
    claim = stage.claims.get(name, "default")
    stage.check(
        claim is not None and _SELECTED_NODE not in claim.metadata.annotations,
        "the claim is unchanged: only nominatedNodeName records the decision",
    )
    nominated = stage.pod(name).status.nominatedNodeName
    stage.check(nominated == (small if gate else ""), f"nominatedNodeName is {nominated or 'unset'}")
    stage.narrator.act("SIGKILL to the scheduler; a node of 64 cpu appears while it is down")
    await stage.stop("scheduler", kill=True)
    big = (await machines.order(BIG))[0].metadata.name
    await stage.start("scheduler", gates)
    await stage.until(f"{name} is bound", lambda: stage.pod(name).spec.nodeName)
    bound = stage.pod(name)
    if gate:
        stage.check(bound.spec.nodeName == small, f"the new scheduler kept to the decision: {small}")
        stage.check(not bound.status.nominatedNodeName, "nominatedNodeName is cleared by the binding")
    else:
        stage.check(bound.spec.nodeName == big, f"the new scheduler decided again: {big}")
    await _end(stage, name, machines)
    await stage.restart("scheduler")


async def play_while_provisioning(stage: Stage) -> None:
    """Kill the scheduler while the volume is created: there must be no second volume."""
    name = "midway"
    machines = Machines(stage)
    small = (await machines.order(SMALL))[0].metadata.name
    stage.narrator.act(f"pod {name}, with a claim that takes 1.5 s")
    await stage.apply(_MANIFESTS % {"name": name, "delay": "1500ms"})
    await stage.until(
        "the claim has a selected node",
        lambda: (
            (claim := stage.claims.get(name, "default")) is not None
            and _SELECTED_NODE in claim.metadata.annotations
        ),
    )
    stage.narrator.act("SIGKILL to the scheduler while the provisioner works; it starts again")
    await stage.stop("scheduler", kill=True)
    await stage.start("scheduler")
    await stage.until(f"{name} is bound", lambda: stage.pod(name).spec.nodeName)
    stage.check(stage.pod(name).spec.nodeName == small, f"bound to the nominated node {small}")

    def volumes() -> int:
        return sum(volume.spec.claimRef.name == name for volume in stage.volumes.list())

    await stage.until("the volume is seen", volumes)
    stage.check(volumes() == 1, "exactly one volume was created")
    await _end(stage, name, machines)


async def _end(stage: Stage, name: str, machines: Machines) -> None:
    await stage.clear()
    await stage.delete(kinds.STORAGE_CLASS, name)
    await machines.give_back(SMALL)
    await machines.give_back(BIG)
