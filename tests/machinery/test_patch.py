from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nominee.machinery.api.pb import apps, core, policy
from nominee.machinery.patch.json_patch import PatchError, diff_strategic, merge_patch, strategic_merge_patch
from nominee.machinery.patch.strategic_schema import Shape, root, rule
from nominee.machinery.wire import codec
from tests.support.recordings import read

POD = "k8s.io.api.core.v1.Pod"
DEPLOYMENT = "k8s.io.api.apps.v1.Deployment"
MESSAGES: dict[str, Any] = {
    "Pod": core.Pod,
    "Node": core.Node,
    "ConfigMap": core.ConfigMap,
    "Service": core.Service,
    "Deployment": apps.Deployment,
    "PersistentVolumeClaim": core.PersistentVolumeClaim,
    "PodDisruptionBudget": policy.PodDisruptionBudget,
}  # fmt: skip
# A write changes these only; the rest of the document is the server's to keep.
WRITTEN_BY = {"": {"metadata", "spec", "data"}, "status": {"metadata", "status"}, "resize": {"spec"}}
SERVER_SIDE = {"generation", "managedFields", "resourceVersion", "uid", "creationTimestamp"}


def patch_cases() -> list[Any]:
    """Each first step that the real server accepted, or refused by the rules of patches themselves."""
    cases = []
    for case in read("api_patch.jsonl"):
        step = case["steps"][0]
        if case["family"] not in ("merge", "strategic") or step["type"] not in ("merge", "strategic"):
            continue
        if (
            "body" in step
            and step["expect"]["code"] in (200, 500)
            and case["kind"] in MESSAGES
            and case["object"]
        ):
            cases.append(pytest.param(case, step, id=case["name"]))
    return cases


def differences(got: Any, want: Any, shape: Shape, path: str = "") -> list[str]:
    """Where `got` says something that `want` does not; `want` may have defaults on top, but no more elements
    of lists and no more keys of maps."""
    if isinstance(got, dict) and isinstance(want, dict):
        found = []
        if shape.is_map and got.keys() != want.keys():
            found.append(f"{path}: {sorted(got)} != {sorted(want)}")
        for key, value in got.items():
            if path == ".metadata" and key in SERVER_SIDE:
                continue
            inner = Shape() if not shape.message and not shape.is_map else rule(shape, key).shape
            found += differences(value, want.get(key), inner, f"{path}.{key}")
        return found
    if isinstance(got, list) and isinstance(want, list) and len(got) == len(want):
        return [
            each
            for index, (mine, theirs) in enumerate(zip(got, want, strict=True))
            for each in differences(mine, theirs, shape, f"{path}[{index}]")
        ]
    if got in (None, {}, []) and want in (None, {}, []):
        return []
    return [] if got == want else [f"{path}: {got} != {want}"]


def without_default_tolerations(spec: dict[str, Any]) -> None:
    """Admission puts these two back when a patch takes them away."""
    added = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
    if "tolerations" in spec:
        spec["tolerations"] = [each for each in spec["tolerations"] if each.get("key") not in added]


@pytest.mark.parametrize(("case", "step"), patch_cases())
def test_golden(case: dict[str, Any], step: dict[str, Any]) -> None:
    message = MESSAGES[case["kind"]]
    full_name = message.DESCRIPTOR.full_name
    document = case["created"]["object"]
    body = json.loads(json.dumps(step["body"]).replace('"$RV"', '"1"'))
    before = copy.deepcopy((document, body))
    try:
        if step["type"] == "merge":
            result = merge_patch(document, body)
        else:
            result = strategic_merge_patch(full_name, document, body)
    except PatchError as error:
        assert error.code == step["expect"]["code"]  # noqa: PT017  # others are to succeed
        assert str(error) == step["expect"]["message"]  # noqa: PT017  # as above
        return
    finally:
        assert (document, body) == before, "the arguments stay as they are"
    assert step["expect"]["code"] == 200
    # Through the message, as on the server: texts of quantities become canonical, unknown fields go.
    result = codec.to_json(codec.from_json(message, result))
    wanted = step["expect"]["object"]
    for each in (result, wanted):
        without_default_tolerations(each.get("spec", {}))
    for half in result.keys() & WRITTEN_BY[step.get("subresource", "")]:
        assert (
            differences(result[half], wanted.get(half), rule(root(full_name), half).shape, f".{half}") == []
        )


def test_golden_is_there() -> None:
    assert len(patch_cases()) > 40


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        # RFC 7386, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch(document: Any, patch: Any, expected: Any) -> None:
    assert merge_patch(document, patch) == expected


def pod(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


def named(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        # Lists of maps merge by their key; what is new goes before what it was not compared with.
        (
            pod(containers=[{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]),
            pod(containers=[{"name": "b", "image": "2"}]),
            pod(containers=[{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]),
        ),
        (
            pod(containers=named("a", "b")),
            pod(containers=[{"name": "a", "$patch": "delete"}]),
            pod(containers=named("b")),
        ),
        (
            pod(containers=named("a", "b")),
            pod(containers=[{"$patch": "replace"}, {"name": "c"}]),
            pod(containers=named("c")),
        ),
        (
            pod(containers=named("a", "b", "c")),
            {"spec": {"$setElementOrder/containers": named("c", "a")}},
            pod(containers=named("b", "c", "a")),
        ),
        # Lists of scalars
        (
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"finalizers": ["c", "a"]}},
            {"metadata": {"finalizers": ["c", "a", "b"]}},
        ),
        (
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
            {"metadata": {"finalizers": ["b"]}},
        ),
        (pod(tolerations=[{"key": "a"}]), pod(tolerations=[{"key": "b"}]), pod(tolerations=[{"key": "b"}])),
        # Maps
        (
            {"metadata": {"labels": {"a": "1", "b": "2"}}},
            {"metadata": {"labels": {"a": None, "c": "3"}}},
            {"metadata": {"labels": {"b": "2", "c": "3"}}},
        ),
        (
            pod(securityContext={"runAsUser": 1}),
            pod(securityContext={"$patch": "delete"}),
            pod(securityContext={}),
        ),
        (
            pod(securityContext={"runAsUser": 1}),
            pod(securityContext={"$patch": "replace", "fsGroup": 2}),
            pod(securityContext={"fsGroup": 2}),
        ),
        # Unions
        (
            pod(volumes=[{"name": "v", "emptyDir": {}}]),
            pod(volumes=[{"name": "v", "hostPath": {"path": "/"}, "$retainKeys": ["name", "hostPath"]}]),
            pod(volumes=[{"name": "v", "hostPath": {"path": "/"}}]),
        ),
        # What is not there is taken, without nulls and directives.
        (
            {},
            {
                "status": {
                    "phase": None,
                    "conditions": [{"type": "A", "$patch": "delete"}, {"type": "B", "reason": None}],
                }
            },
            {"status": {"conditions": [{"type": "B"}]}},
        ),
        (
            {"status": {"nominatedNodeName": "n1", "phase": "Pending"}},
            {"status": {"nominatedNodeName": None}},
            {"status": {"phase": "Pending"}},
        ),
    ],
)
def test_strategic_merge(document: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]) -> None:
    assert strategic_merge_patch(POD, document, patch) == expected


@pytest.mark.parametrize(
    ("document", "patch", "code", "message"),
    [
        ({}, {"$patch": "bogus"}, 500, "unknown patch type: bogus in map: map[$patch:bogus]"),
        (
            pod(containers=named("a")),
            pod(containers=[{"image": "1"}]),
            500,
            "map: map[image:1] does not contain declared merge key: name",
        ),
        (pod(containers=named("a")), pod(containers=[["x"]]), 422, "lists of lists are not supported"),
        (pod(), {"spec": {"$retainKeys": "x"}}, 400, "invalid patch format of retainKeys"),
        (pod(), {"spec": {"$retainKeys": [], "nodeName": "n"}}, 400, "invalid patch format of retainKeys"),
        (pod(), {"spec": {"$setElementOrder": []}}, 400, "invalid patch format of setElementOrder list"),
        (pod(), {"spec": {"$deleteFromPrimitiveList": []}}, 400, "invalid patch format of primitive list"),
        (
            pod(tolerations=[{"key": "a"}]),
            {"spec": {"$setElementOrder/tolerations": [{"key": "a"}]}},
            500,
            "$setElementOrder/tolerations of a list that is replaced as a whole: its elements are"
            " map[string]interface {}, which have no merge key",
        ),
    ],
)
def test_refused(document: dict[str, Any], patch: dict[str, Any], code: int, message: str) -> None:
    with pytest.raises(PatchError) as caught:
        strategic_merge_patch(POD, document, patch)
    assert (caught.value.code, str(caught.value)) == (code, message)


CONDITION = {"type": "PodScheduled", "status": "False", "lastProbeTime": None, "reason": "Unschedulable"}


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        # As a kube-scheduler 1.36.2 writes them
        ({"status": {}}, {"status": {"nominatedNodeName": "n1"}}, {"status": {"nominatedNodeName": "n1"}}),
        ({"status": {"nominatedNodeName": "n1"}}, {"status": {}}, {"status": {"nominatedNodeName": None}}),
        (
            {"status": {}},
            {"status": {"conditions": [CONDITION], "nominatedNodeName": "n1"}},
            {"status": {"conditions": [CONDITION], "nominatedNodeName": "n1"}},
        ),
        (
            {"status": {"conditions": [{"type": "Initialized"}, {"type": "Ready"}]}},
            {"status": {"conditions": [{"type": "Initialized"}, {"type": "Ready"}, CONDITION]}},
            {
                "status": {
                    "$setElementOrder/conditions": [
                        {"type": "Initialized"},
                        {"type": "Ready"},
                        {"type": "PodScheduled"},
                    ],
                    "conditions": [CONDITION],
                }
            },
        ),
        (
            {"status": {"conditions": [CONDITION]}},
            {"status": {"conditions": [CONDITION | {"status": "True"}]}},
            {
                "status": {
                    "$setElementOrder/conditions": [{"type": "PodScheduled"}],
                    "conditions": [{"type": "PodScheduled", "status": "True"}],
                }
            },
        ),
        (
            pod(containers=named("a", "b")),
            pod(containers=named("b")),
            {
                "spec": {
                    "$setElementOrder/containers": named("b"),
                    "containers": [{"name": "a", "$patch": "delete"}],
                }
            },
        ),
        (
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"finalizers": ["b", "c"]}},
            {
                "metadata": {
                    "$deleteFromPrimitiveList/finalizers": ["a"],
                    "$setElementOrder/finalizers": ["b", "c"],
                    "finalizers": ["c"],
                }
            },
        ),
        (
            pod(volumes=[{"name": "v", "emptyDir": {}}]),
            pod(volumes=[{"name": "v", "hostPath": {"path": "/"}}]),
            {
                "spec": {
                    "$setElementOrder/volumes": named("v"),
                    "volumes": [
                        {
                            "name": "v",
                            "emptyDir": None,
                            "hostPath": {"path": "/"},
                            "$retainKeys": ["hostPath", "name"],
                        }
                    ],
                }
            },
        ),
        (pod(nodeName="n"), pod(nodeName="n"), {}),
    ],
)
def test_diff(old: dict[str, Any], new: dict[str, Any], patch: dict[str, Any]) -> None:
    assert diff_strategic(POD, old, new) == patch
    assert tidy(strategic_merge_patch(POD, old, patch)) == tidy(new)


def test_messages_give_the_schedulers_bytes() -> None:
    """The body of a PATCH as recorded from a kube-scheduler 1.36.2, from messages through the codec."""
    old, new = core.Pod(), core.Pod()
    condition = new.status.conditions.add(type="PodScheduled", status="False", reason="Unschedulable")
    condition.message = "0/1 nodes are available: 1 Insufficient cpu."
    condition.observedGeneration = 1
    condition.lastTransitionTime.seconds = 1_795_228_284
    new.status.nominatedNodeName = "n1"
    patch = diff_strategic(POD, codec.to_json(old), codec.to_json(new))
    assert json.dumps(patch, sort_keys=True, separators=(",", ":")) == (
        '{"status":{"conditions":[{"lastProbeTime":null,"lastTransitionTime":"2026-11-21T02:31:24Z",'
        '"message":"0/1 nodes are available: 1 Insufficient cpu.","observedGeneration":1,'
        '"reason":"Unschedulable","status":"False","type":"PodScheduled"}],"nominatedNodeName":"n1"}}'
    )


names = st.sampled_from("abcd")
texts = st.sampled_from(["", "x", "y"])
environments = st.lists(
    st.builds(lambda n, v: {"name": n, "value": v}, names, texts), max_size=3, unique_by=lambda e: e["name"]
)
container_lists = st.lists(
    st.fixed_dictionaries(
        {"name": names}, optional={"image": texts, "env": environments, "args": st.lists(texts, max_size=2)}
    ),
    max_size=4,
    unique_by=lambda c: c["name"],
)
deployments = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "labels": st.dictionaries(names, texts, max_size=3),
                "finalizers": st.lists(names, max_size=3, unique=True),
            },
        ),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "replicas": st.integers(0, 3),
                "strategy": st.sampled_from(
                    [{"type": "Recreate"}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}]
                ),
                "template": st.fixed_dictionaries(
                    {},
                    optional={
                        "spec": st.fixed_dictionaries(
                            {},
                            optional={
                                "containers": container_lists,
                                "tolerations": st.lists(st.fixed_dictionaries({"key": names}), max_size=2),
                            },
                        ),
                    },
                ),
            },
        ),
    },
)


def tidy(value: Any) -> Any:
    """Without nulls, empty maps and lists: a patch does not tell them from nothing."""
    if isinstance(value, dict):
        cleaned = {key: tidy(each) for key, each in value.items()}
        return {key: each for key, each in cleaned.items() if each not in ({}, [], None)}
    return [tidy(each) for each in value] if isinstance(value, list) else value


@given(deployments, deployments)
def test_a_diff_leads_from_one_to_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    patch = diff_strategic(DEPLOYMENT, old, new)
    assert tidy(strategic_merge_patch(DEPLOYMENT, old, patch)) == tidy(new)
    again = diff_strategic(DEPLOYMENT, new, new)
    assert strategic_merge_patch(DEPLOYMENT, new, again) == new


@given(deployments, deployments)
def test_applying_twice_is_applying_once(old: dict[str, Any], patch: dict[str, Any]) -> None:
    once = strategic_merge_patch(DEPLOYMENT, old, patch)
    assert strategic_merge_patch(DEPLOYMENT, once, patch) == once


@pytest.mark.parametrize("order", [1, -1])
def test_long_lists_merge_in_a_time_that_grows_as_they_do(order: int) -> None:
    """Two lists of 20,000 elements, with a deletion of every other one: minutes when each is searched."""
    count = 20_000

    def variables(value: str) -> list[dict[str, Any]]:
        return [{"name": f"V{number}", "value": value} for number in range(count)]

    def pod(env: list[dict[str, Any]], finalizers: list[str]) -> dict[str, Any]:
        container = {"name": "c", "env": env}
        return {"metadata": {"finalizers": finalizers}, "spec": {"containers": [container]}}

    changes = variables("new")
    changes[::2] = [{"name": each["name"], "$patch": "delete"} for each in changes[::2]]
    finalizers = [f"f{number}" for number in range(count)]
    patch = pod(changes[::order], [f"g{number}" for number in range(count)])
    merged = strategic_merge_patch(POD, pod(variables("old"), finalizers), patch)
    env = merged["spec"]["containers"][0]["env"]
    assert [each["value"] for each in env] == ["new"] * (count // 2)
    assert [each["name"] for each in env] == [f"V{number}" for number in range(1, count, 2)][::order]
    assert len(merged["metadata"]["finalizers"]) == 2 * count
