# ruff: noqa: E501
"""The rules of pods that the sample of golden cases leaves out, in the same form: one entry a rule.

Each names what is sent to which pod, and what the real server (1.36) answers, stores and shows to watchers.
"""

from __future__ import annotations

import copy
from typing import Any

OK: dict[str, Any] = {"ok": True}
PRECONDITION = (
    'Operation cannot be fulfilled on pods "p": StorageError: invalid object, Code: 4,'
    " Key: /registry/pods/default/p, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
)
UID_PROBLEM = PRECONDITION + "UID in precondition: other, UID in object meta: uid-1"
STALE = (
    'Operation cannot be fulfilled on pods "p": the object has been modified; please apply your changes to the'
    " latest version and try again"
)
UPDATABLE = 'Pod "p" is invalid: spec: Forbidden: pod updates may not change fields other than'
BOUND = (
    'Pod "p" is invalid: status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to'
    " a node"
)
BAD_NAME = (
    'status.nominatedNodeName: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain must consist of lower'
    " case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"
)
REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
CLEARING_OFF = {"ClearingNominatedNodeNameAfterBinding": False}


def _set(document: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for part in parents:
        document = document[int(part)] if isinstance(document, list) else document.setdefault(part, {})
    if value is None:
        document.pop(last, None)
    else:
        document[last] = value


def changed(document: dict[str, Any], **values: Any) -> dict[str, Any]:
    """A copy with values at paths, `__` between their parts; None removes."""
    made = copy.deepcopy(document)
    for path, value in values.items():
        _set(made, path.replace("__", "."), value)
    return made


PENDING: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "namespace": "default",
        "uid": "uid-1",
        "resourceVersion": "CURRENT",
        "generation": 1,
        "creationTimestamp": "2023-11-14T22:13:20Z",
        "labels": {"a": "true"},
    },
    "spec": {
        "containers": [
            {
                "name": "foo",
                "image": "image",
                "imagePullPolicy": "IfNotPresent",
                "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    },
    "status": {"phase": "Pending", "qosClass": "Burstable"},
}
RUNNING = changed(
    PENDING,
    spec__nodeName="n9",
    status__phase="Running",
    status__conditions=[{"type": "Ready", "status": "True"}],
)
DELETING = {"metadata__deletionTimestamp": "NOW+30s", "metadata__deletionGracePeriodSeconds": 30}
UNREADY = changed(RUNNING, status__conditions=[{"type": "Ready", "status": "False"}])
GATED = changed(PENDING, spec__schedulingGates=[{"name": "example.com/g"}])


def bind(name: str = "p", kind: str = "Node", node: str = "n1", **metadata: Any) -> dict[str, Any]:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "target": {"kind": kind, "name": node},
    }
    return {"verb": "POST", "path": "pods/p/binding", "body": body}


def put(body: dict[str, Any], subresource: str = "") -> dict[str, Any]:
    return {"verb": "PUT", "path": f"pods/p/{subresource}".rstrip("/"), "body": body}


def status(body: dict[str, Any]) -> dict[str, Any]:
    return put(body, "status")


def post(body: dict[str, Any]) -> dict[str, Any]:
    return {"verb": "POST", "path": "pods", "body": changed(body, metadata__resourceVersion=None)}


def delete(**options: Any) -> dict[str, Any]:
    return {"verb": "DELETE", "path": "pods/p", "options": options}


def evict(name: str = "p", **options: Any) -> dict[str, Any]:
    body: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": "default"},
    }
    if options:
        body["deleteOptions"] = options
    return {"verb": "POST", "path": "pods/p/eviction", "body": body}


def budget(name: str = "b", /, **values: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "default", "resourceVersion": "1", "generation": 1},
        "spec": {"selector": {"matchLabels": {"a": "true"}}},
        "status": {
            "observedGeneration": 1,
            "disruptionsAllowed": 0,
            "currentHealthy": 0,
            "desiredHealthy": 0,
            "expectedPods": 0,
        },
    }
    return changed(made, **values)


def counted(allowed: int, *disrupted: str, name: str = "b") -> dict[str, Any]:
    return {name: {"disruptionsAllowed": allowed, "disruptedPods": list(disrupted)}}


def case(
    case_id: str,
    pod: dict[str, Any] | None,
    requests: Any,
    *,
    events: list[str] | None = None,
    gone: bool = False,
    refused: tuple[int, str, str] | None = None,
    after: dict[str, Any] | None = None,
    pdbs: list[dict[str, Any]] | None = None,
    gates: dict[str, bool] | None = None,
    dry_run: bool = False,
    **expect: Any,
) -> dict[str, Any]:
    """One case. `refused` is (code, reason, message); without events nothing may have been written."""
    events = events or []
    listed = requests if isinstance(requests, list) else [requests]
    if dry_run:
        listed = [{**request, "dryRun": True} for request in listed]
    stored = (pod is not None or any(event.startswith("ADDED") for event in events)) and not gone
    expected: dict[str, Any] = {
        "ok": refused is None,
        "podExistsAfter": stored,
        "resourceVersionChanged": stored and bool(events),
        "watchEvents": events,
        **expect,
    }
    if refused is not None:
        expected |= {"code": refused[0], "reason": refused[1], "message": refused[2]}
    if after is not None and stored:
        expected["after"] = after
    made: dict[str, Any] = {"id": case_id, "requests": listed, "expect": expected}
    if pod is not None:
        made["pod"] = pod
    if pdbs is not None:
        made["pdbs"] = pdbs
    if gates is not None:
        made["gates"] = gates
    return made


CONFLICT = (409, "Conflict")
MODIFIED = ["MODIFIED"]
GONE = ["MODIFIED deleting(grace=0)", "DELETED deleting(grace=0)"]
EVICTED = ["MODIFIED DisruptionTarget", "MODIFIED deleting(grace=30) DisruptionTarget"]
EVICTED_GONE = [
    "MODIFIED DisruptionTarget",
    "MODIFIED deleting(grace=0) DisruptionTarget",
    "DELETED deleting(grace=0) DisruptionTarget",
]
NOMINATED = changed(PENDING, status__nominatedNodeName="n1")


def _binding_refused(problem: str) -> tuple[int, str, str]:
    return (*CONFLICT, f'Operation cannot be fulfilled on pods/binding "p": {problem}')


BINDING = [
    case("bind-ok", PENDING, bind(), events=MODIFIED, after={
        "nodeName": "n1", "generation": 1, "conditions": [{"type": "PodScheduled", "status": "True"}]}),
    case("bind-clears-other-nominated", changed(PENDING, status__nominatedNodeName="n7"), bind(),
         events=MODIFIED, after={"nominatedNodeName": ""}),
    case("bind-gate-off-keeps-nominated", NOMINATED, bind(), events=MODIFIED, gates=CLEARING_OFF,
         after={"nominatedNodeName": "n1"}),
    case("bind-twice-same-node", changed(PENDING, spec__nodeName="n1"), bind(),
         refused=_binding_refused('pod p is already assigned to node "n1"')),
    case("bind-deleting-and-assigned", changed(RUNNING, **DELETING), bind(),
         refused=_binding_refused("pod p is being deleted, cannot be assigned to a host")),
    case("bind-missing", None, bind(), refused=(404, "NotFound", 'pods "p" not found')),
    case("bind-uid-mismatch", PENDING, bind(uid="other"), refused=(*CONFLICT, UID_PROBLEM)),
    case("bind-rv-mismatch", PENDING, bind(resourceVersion="1"), messageIsPrefix=True, refused=(
        *CONFLICT, PRECONDITION + "ResourceVersion in precondition: 1, ResourceVersion in o")),
    case("bind-uid-mismatch-before-assigned", RUNNING, bind(uid="other"), refused=(*CONFLICT, UID_PROBLEM)),
    case("bind-kind", PENDING, bind(kind="Pod"), refused=(
        500, "", 'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"')),
    case("bind-kind-empty", PENDING, bind(kind=""), events=MODIFIED, after={"nodeName": "n1"}),
    case("bind-target-empty", PENDING, bind(node=""), refused=(500, "", "target.name: Required value")),
    case("bind-name-mismatch", PENDING, bind(name="q"), refused=(
        400, "BadRequest", "name in URL does not match name in Binding object")),
    case("bind-metadata", PENDING, bind(annotations={"x": "y"}, labels={"a": "b", "l": "m"}), events=MODIFIED,
         after={"annotations": {"x": "y"}, "labels": {"a": "b", "l": "m"}}),
    case("bind-dry-run-conflict", RUNNING, bind(), dry_run=True,
         refused=_binding_refused('pod p is already assigned to node "n9"')),
    case("bind-terminal", changed(PENDING, status__phase="Succeeded"), bind(), events=MODIFIED),
    case("bind-nnn-bound-status", PENDING, [bind(), status(changed(
        NOMINATED, metadata__resourceVersion=None))], refused=(422, "Invalid", BOUND)),
]  # fmt: skip

UNVERSIONED = changed(PENDING, metadata__resourceVersion=None)
ENDED = changed(
    RUNNING, spec__restartPolicy="Never",
    status__containerStatuses=[{"name": "foo", "image": "", "imageID": "", "state": {"terminated": {"exitCode": 0}}}],
)  # fmt: skip
STATUS = [
    case("status-nnn-set", PENDING, status(NOMINATED), events=MODIFIED, after={"nominatedNodeName": "n1"}),
    case("status-nnn-clear", NOMINATED, status(PENDING), events=MODIFIED, after={"nominatedNodeName": ""}),
    case("status-nnn-bound", RUNNING, status(changed(RUNNING, status__nominatedNodeName="n1")),
         refused=(422, "Invalid", BOUND)),
    case("status-nnn-bound-same-node", RUNNING, status(changed(RUNNING, status__nominatedNodeName="n9")),
         refused=(422, "Invalid", BOUND)),
    case("status-nnn-bound-clear", changed(RUNNING, status__nominatedNodeName="n1"), status(RUNNING),
         events=MODIFIED, after={"nominatedNodeName": ""}),
    case("status-nnn-bound-gate-off", RUNNING, status(changed(RUNNING, status__nominatedNodeName="n1")),
         events=MODIFIED, gates=CLEARING_OFF, after={"nominatedNodeName": "n1"}),
    case("status-nnn-invalid", PENDING, status(changed(PENDING, status__nominatedNodeName="Bad_Name")),
         messageIsPrefix=True, refused=(422, "Invalid", f'Pod "p" is invalid: {BAD_NAME}')),
    case("status-nnn-invalid-bound", RUNNING, status(changed(RUNNING, status__nominatedNodeName="Bad_Name")),
         messageIsPrefix=True, refused=(422, "Invalid", f'Pod "p" is invalid: [{BAD_NAME}')),
    case("status-nnn-deleting", changed(PENDING, **DELETING), status(changed(NOMINATED, **DELETING)),
         events=["MODIFIED deleting(grace=30)"]),
    case("status-spec-ignored", PENDING, status(changed(
        NOMINATED, spec__terminationGracePeriodSeconds=5, spec__containers__0__image="other")), events=MODIFIED,
        after={"image": "image", "generation": 1}),
    case("status-nodename-ignored", PENDING, status(changed(NOMINATED, spec__nodeName="n1")), events=MODIFIED,
         after={"nodeName": "", "nominatedNodeName": "n1"}),
    case("status-labels-kept", PENDING, status(changed(
        PENDING, metadata__labels={"a": "x"}, metadata__annotations={"n": "m"})), events=MODIFIED,
        after={"labels": {"a": "x"}, "annotations": {"n": "m"}}),
    case("status-finalizers", PENDING, status(changed(PENDING, metadata__finalizers=["example.com/f"])),
         events=MODIFIED, after={"finalizers": ["example.com/f"]}),
    case("status-owner-ignored", PENDING, status(changed(NOMINATED, metadata__ownerReferences=[
        {"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u"}])), events=MODIFIED,
        after={"ownerReferences": None}),
    case("status-deletion-kept", changed(PENDING, **DELETING), status(NOMINATED),
         events=["MODIFIED deleting(grace=30)"], after={"deletionTimestampSet": True}),
    case("status-qos-change", PENDING, status(changed(PENDING, status__qosClass="Guaranteed")), refused=(
        422, "Invalid",
        'Pod "p" is invalid: status.qosClass: Invalid value: "Guaranteed": field is immutable')),
    case("status-noop", RUNNING, status(RUNNING)),
    case("status-obsgen-negative", PENDING, status(changed(PENDING, status__observedGeneration=-1)), refused=(
        422, "Invalid",
        'Pod "p" is invalid: status.observedGeneration: Invalid value: -1: must be a non-negative integer')),
    case("status-restart-never", ENDED, status(changed(ENDED, status__containerStatuses=[
        {"name": "foo", "image": "", "imageID": "", "state": {"running": {}}}])), refused=(
        422, "Invalid", 'Pod "p" is invalid: status.containerStatuses[0].state: Forbidden: may not be'
        " transitioned to non-terminated state")),
    case("status-stale-rv", PENDING, status(changed(NOMINATED, metadata__resourceVersion="1")),
         refused=(*CONFLICT, STALE)),
    case("status-no-rv", PENDING, status(changed(NOMINATED, metadata__resourceVersion=None)), events=MODIFIED),
    case("status-uid-mismatch", PENDING, status(changed(NOMINATED, metadata__uid="other")),
         refused=(*CONFLICT, UID_PROBLEM)),
    case("status-missing", None, status(UNVERSIONED), refused=(404, "NotFound", 'pods "p" not found')),
    case("status-nnn-and-condition", PENDING, status(changed(NOMINATED, status__conditions=[
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}])),
        events=MODIFIED, after={"nominatedNodeName": "n1", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}]}),
]  # fmt: skip

FINALIZED = changed(PENDING, metadata__finalizers=["example.com/f"])
ZERO_GRACE = {"metadata__deletionTimestamp": "NOW", "metadata__deletionGracePeriodSeconds": 0}
PUT = [
    case("put-resources", PENDING, put(changed(PENDING, **{
        "spec__containers__0__resources": {"requests": {"cpu": "200m", "memory": "100Mi"}}})),
        messageIsPrefix=True, refused=(422, "Invalid", UPDATABLE)),
    case("put-image", PENDING, put(changed(PENDING, spec__containers__0__image="other")), events=MODIFIED,
         after={"image": "other", "generation": 2}),
    case("put-labels", PENDING, put(changed(PENDING, metadata__labels={"a": "x"})), events=MODIFIED,
         after={"labels": {"a": "x"}, "generation": 1}),
    case("put-generation-ignored", PENDING, put(changed(
        PENDING, metadata__generation=9, metadata__labels={"a": "x"})), events=MODIFIED, after={"generation": 1}),
    case("put-uid-mismatch", PENDING, put(changed(PENDING, metadata__uid="other")),
         refused=(*CONFLICT, UID_PROBLEM)),
    case("put-missing", None, put(UNVERSIONED), refused=(404, "NotFound", 'pods "p" not found')),
    case("put-add-gate", GATED, put(changed(GATED, spec__schedulingGates=[
        {"name": "example.com/g"}, {"name": "example.com/h"}])), refused=(
        422, "Invalid", 'Pod "p" is invalid: spec.schedulingGates[1].name: Forbidden: only deletion is allowed,'
        " but found new scheduling gate 'example.com/h'")),
    case("put-remove-gate", GATED, put(PENDING), events=MODIFIED, after={"schedulingGates": None}),
    case("put-priority", PENDING, put(changed(PENDING, spec__priority=5)), messageIsPrefix=True,
         refused=(422, "Invalid", UPDATABLE)),
    case("put-grace-negative", PENDING, put(changed(PENDING, spec__terminationGracePeriodSeconds=1)),
         messageIsPrefix=True, refused=(422, "Invalid", UPDATABLE)),
    case("put-last-finalizer", changed(FINALIZED, **ZERO_GRACE), put(changed(PENDING, **ZERO_GRACE)), gone=True,
         events=["DELETED deleting(grace=0)"]),
    case("put-last-finalizer-grace", changed(FINALIZED, **DELETING), put(changed(PENDING, **DELETING)),
         events=["MODIFIED deleting(grace=30)"]),
]  # fmt: skip

CREATE = [
    case("create-status-dropped", None, post(changed(
        NOMINATED, status__phase="Running", status__qosClass="Guaranteed", metadata__generation=7)),
        events=["ADDED"], after={
            "phase": "Pending", "nominatedNodeName": "", "qosClass": "Burstable", "generation": 1}),
    case("create-with-nodename", None, post(RUNNING), events=["ADDED"],
         after={"nodeName": "n9", "conditions": []}),
    case("create-gated", None, post(GATED), events=["ADDED"], after={"conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
         "message": "Scheduling is blocked due to non-empty scheduling gates"}]}),
    case("create-gated-with-nodename", None, post(changed(GATED, spec__nodeName="n1")), refused=(
        422, "Invalid", 'Pod "p" is invalid: spec.nodeName: Forbidden: cannot be set until all schedulingGates'
        " have been cleared")),
]  # fmt: skip


def _grace(seconds: int) -> list[str]:
    return [f"MODIFIED deleting(grace={seconds})"]


RUNNING_DELETING = changed(RUNNING, **DELETING)
WRONG_VERSION = (
    *CONFLICT, 'Operation cannot be fulfilled on Pod "p": the ResourceVersion in the precondition (1) does not'
    " match the ResourceVersion in record (<CURRENT>). The object might have been modified",
)  # fmt: skip
DELETE = [
    case("delete-default-grace", RUNNING, delete(), events=_grace(30), after={"generation": 2}),
    case("delete-unscheduled", PENDING, delete(), events=GONE, gone=True),
    case("delete-unscheduled-grace", PENDING, delete(gracePeriodSeconds=60), events=GONE, gone=True),
    case("delete-unscheduled-nominated", NOMINATED, delete(), events=GONE, gone=True),
    case("delete-succeeded", changed(RUNNING, status__phase="Succeeded"), delete(), events=GONE, gone=True),
    case("delete-failed-grace", changed(RUNNING, status__phase="Failed"), delete(gracePeriodSeconds=60),
         events=GONE, gone=True),
    case("delete-grace-5", RUNNING, delete(gracePeriodSeconds=5), events=_grace(5)),
    case("delete-grace-300", RUNNING, delete(gracePeriodSeconds=300), events=_grace(300)),
    case("delete-grace-0", RUNNING, delete(gracePeriodSeconds=0), events=GONE, gone=True),
    case("delete-grace-negative", RUNNING, delete(gracePeriodSeconds=-5), events=_grace(1)),
    case("delete-spec-grace-0", changed(RUNNING, spec__terminationGracePeriodSeconds=0), delete(), events=GONE,
         gone=True),
    case("delete-again", RUNNING_DELETING, delete()),
    case("delete-again-longer", RUNNING_DELETING, delete(gracePeriodSeconds=60)),
    case("delete-again-same", RUNNING_DELETING, delete(gracePeriodSeconds=30)),
    case("delete-again-shorter", changed(RUNNING_DELETING, metadata__generation=2), delete(gracePeriodSeconds=5),
         events=_grace(5), after={"generation": 2}),
    case("delete-again-into-the-past", changed(
        RUNNING, metadata__deletionTimestamp="NOW-20s", metadata__deletionGracePeriodSeconds=30),
        delete(gracePeriodSeconds=5), events=_grace(1)),
    case("delete-again-zero", RUNNING_DELETING, delete(gracePeriodSeconds=0), events=GONE, gone=True),
    case("delete-rv-mismatch", RUNNING, delete(preconditions={"resourceVersion": "1"}), refused=WRONG_VERSION),
    case("delete-uid-ok-zero", RUNNING, delete(gracePeriodSeconds=0, preconditions={"uid": "uid-1"}),
         events=GONE, gone=True),
    case("delete-rv-ok-zero", RUNNING, delete(
        gracePeriodSeconds=0, preconditions={"resourceVersion": "CURRENT"}), events=GONE, gone=True),
    case("delete-missing", None, delete(), refused=(404, "NotFound", 'pods "p" not found')),
    case("delete-finalizer-zero", changed(RUNNING, metadata__finalizers=["example.com/f"]),
         delete(gracePeriodSeconds=0), events=_grace(0)),
    case("delete-then-resize", RUNNING_DELETING, put(changed(RUNNING_DELETING, **{
        "spec__containers__0__resources": {"requests": {"cpu": "200m", "memory": "100Mi"}}}), "resize"),
        events=_grace(30), after={"cpuRequest": "200m", "generation": 2}),
    case("delete-already-zero-grace", changed(RUNNING, **ZERO_GRACE), delete(), gone=True,
         events=["DELETED deleting(grace=0)"]),
    case("delete-orphan", RUNNING, delete(gracePeriodSeconds=0, propagationPolicy="Orphan"), events=_grace(0),
         after={"finalizers": ["orphan"]}),
]  # fmt: skip

LARGER = changed(
    RUNNING, **{"spec__containers__0__resources": {"requests": {"cpu": "200m", "memory": "100Mi"}}}
)
RESIZE = [
    case("resize-ok", RUNNING, put(LARGER, "resize"), events=MODIFIED, after={
        "cpuRequest": "200m", "generation": 2, "conditions": [{"type": "Ready", "status": "True"}]}),
    case("resize-stale-rv", RUNNING, put(changed(
        LARGER, metadata__resourceVersion="1", spec__containers__0__name="bar"), "resize"),
        refused=(*CONFLICT, STALE)),
    case("resize-noop", RUNNING, put(RUNNING, "resize")),
    case("resize-dry-run", RUNNING, put(LARGER, "resize"), dry_run=True),
]  # fmt: skip


def _blocked(
    name: str, pdb: dict[str, Any], text: str, pod: dict[str, Any] = RUNNING, *, retry: int = 0, **more: Any
) -> dict[str, Any]:
    allowed = pdb["status"]["disruptionsAllowed"]
    if retry:
        more["retryAfterSeconds"] = retry
    return case(
        name, pod, evict(), pdbs=[pdb], refused=(429, "TooManyRequests", REFUSED), pdbAfter=counted(allowed),
        causes=[{"type": "DisruptionBudget", "message": f"The disruption budget b {text}"}], **more,
    )  # fmt: skip


def _spec(selector: Any = None, policy: str = "") -> dict[str, Any]:
    spec = {} if selector is None else {"selector": selector}
    return {"spec": {**spec, **({"unhealthyPodEvictionPolicy": policy} if policy else {})}}


def _false(reason: str, message: str) -> list[dict[str, str]]:
    return [{"type": "DisruptionAllowed", "status": "False", "reason": reason, "message": message}]


ALWAYS = _spec({"matchLabels": {"a": "true"}}, "AlwaysAllow")
HEALTHY = {"status__currentHealthy": 3, "status__desiredHealthy": 2}
NONE_LEFT = "needs 0 healthy pods and has 0 currently"
TERMINAL = changed(RUNNING, status__phase="Failed")
EVICT = [
    case("evict-allowed", RUNNING, evict(), pdbs=[budget(status__disruptionsAllowed=2)], events=EVICTED,
         pdbAfter=counted(1, "p")),
    case("evict-allowed-last", RUNNING, evict(), pdbs=[budget(status__disruptionsAllowed=1)], events=EVICTED,
         pdbAfter=counted(0, "p")),
    _blocked("evict-none", budget(status__currentHealthy=2, status__desiredHealthy=2),
             "needs 2 healthy pods and has 2 currently"),
    _blocked("evict-none-more-healthy", budget(**HEALTHY), "does not allow evicting pods currently"),
    _blocked("evict-syncfailed", budget(status__conditions=_false("SyncFailed", "no controller")),
             "does not allow evicting pods currently because it failed sync: no controller"),
    _blocked("evict-condition-message", budget(status__conditions=_false("Custom", "why"), **HEALTHY),
             "does not allow evicting pods currently (Custom): why"),
    _blocked("evict-stale-pdb", budget(metadata__generation=2, status__disruptionsAllowed=5),
             "is still being processed by the server.", retry=10),
    case("evict-negative", RUNNING, evict(), pdbs=[budget(status__disruptionsAllowed=-1)], refused=(
        403, "Forbidden", 'poddisruptionbudget.policy "b" is forbidden: pdb disruptions allowed is negative'),
        pdbAfter=counted(-1)),
    case("evict-other-namespace", RUNNING, evict(), pdbs=[budget(metadata__namespace="other")], events=EVICTED,
         pdbAfter=counted(0)),
    case("evict-selector-mismatch", RUNNING, evict(), pdbs=[budget(**_spec({"matchLabels": {"a": "b"}}))],
         events=EVICTED, pdbAfter=counted(0)),
    _blocked("evict-empty-selector", budget(**_spec({})), NONE_LEFT),
    case("evict-unscheduled", PENDING, evict(), pdbs=[budget()], events=EVICTED_GONE, gone=True,
         pdbAfter=counted(0)),
    case("evict-failed", TERMINAL, evict(), pdbs=[budget()], events=EVICTED_GONE, gone=True,
         pdbAfter=counted(0)),
    case("evict-deleting", RUNNING_DELETING, evict(), pdbs=[budget()], pdbAfter=counted(0),
         events=["MODIFIED deleting(grace=30) DisruptionTarget"]),
    case("evict-unready-alwaysallow", UNREADY, evict(), pdbs=[budget(**ALWAYS)], events=EVICTED,
         pdbAfter=counted(0)),
    case("evict-unready-ifhealthy", UNREADY, evict(), pdbs=[budget(
        status__currentHealthy=2, status__desiredHealthy=2)], events=EVICTED, pdbAfter=counted(0)),
    _blocked("evict-unready-desired-zero", budget(), NONE_LEFT, UNREADY),
    case("evict-unready-room", UNREADY, evict(), pdbs=[budget(
        status__disruptionsAllowed=1, status__currentHealthy=1, status__desiredHealthy=2)], events=EVICTED,
        pdbAfter=counted(0, "p")),
    case("evict-unready-stale-pdb-alwaysallow", UNREADY, evict(), pdbs=[budget(
        metadata__generation=2, **ALWAYS)], events=EVICTED, pdbAfter=counted(0)),
    _blocked("evict-dry-run-none", budget(), NONE_LEFT, dry_run=True),
    case("evict-grace-zero", RUNNING, evict(gracePeriodSeconds=0), events=EVICTED_GONE, gone=True),
    case("evict-name-mismatch", RUNNING, evict("q"), refused=(
        400, "BadRequest", "name in URL does not match name in Eviction object")),
    case("evict-uid-mismatch", RUNNING, evict(preconditions={"uid": "other"}), pdbs=[budget(
        status__disruptionsAllowed=1)], pdbAfter=counted(0, "p"), refused=(
        *CONFLICT, 'Operation cannot be fulfilled on Pod "p": the UID in the precondition (other) does not match'
        " the UID in record (uid-1). The object might have been deleted and then recreated")),
    case("evict-rv-mismatch", RUNNING, evict(preconditions={"resourceVersion": "1"}), refused=WRONG_VERSION),
    case("evict-rv-ok", RUNNING, evict(preconditions={"resourceVersion": "CURRENT"}), events=EVICTED),
    case("evict-unsafe-option", RUNNING, evict(ignoreStoreReadErrorWithClusterBreakingPotential=True), refused=(
        422, "Invalid", 'Eviction.policy "p" is invalid:'
        " deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: can not be set for"
        " pod eviction, try after removing the option")),
    case("evict-existing-condition", changed(RUNNING, status__conditions=[
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]), evict(),
        events=EVICTED, after={"conditions": [
            {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
             "message": "Eviction API: evicting"}]}),
    case("evict-too-many-disrupted", RUNNING, evict(), pdbs=[budget(status__disruptionsAllowed=1, **{
        "status__disruptedPods": {f"q{i}": "2023-11-14T22:13:20Z" for i in range(2001)}})], refused=(
        403, "Forbidden", 'poddisruptionbudget.policy "b" is forbidden: DisruptedPods map too big - too many'
        " evictions not confirmed by PDB controller")),
    case("evict-dry-run-mismatch", RUNNING, evict(dryRun=["All", "All"]), dry_run=True, refused=(
        500, "", "Non-matching dry-run options in request and content: [All] and [All All]")),
]  # fmt: skip

CASES = [*BINDING, *STATUS, *PUT, *CREATE, *DELETE, *RESIZE, *EVICT]
