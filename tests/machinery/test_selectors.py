from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nominee.machinery.api.pb import meta
from nominee.machinery.api.selectors import FieldSelector, LabelSelector, Operator, Requirement, SelectorError
from tests.support.recordings import read

HEADER, *LINES = read("api_list.jsonl")
KINDS = {"/api/v1/pods": "Pod", "/api/v1/namespaces/default/configmaps": "ConfigMap"}


def listed(kind: str, selector: LabelSelector) -> list[str]:
    found = []
    for entry in HEADER["objects"]:
        metadata = entry["object"]["metadata"]
        if entry["object"]["kind"] == kind and selector.matches(metadata.get("labels", {})):
            found.append(f"{metadata.get('namespace', 'default')}/{metadata['name']}")
    return sorted(found)


def label_cases() -> list[Any]:
    cases = []
    for line in LINES:
        if line.get("family") == "label":
            expect = line["expect"]
            if expect["code"] != 200 or line["path"] in KINDS:
                text = line["query"]["labelSelector"]
                cases.append(pytest.param(text, line["path"], expect, id=line["name"]))
    return cases


@pytest.mark.parametrize(("text", "path", "expect"), label_cases())
def test_golden_label_selectors(text: str, path: str, expect: dict[str, Any]) -> None:
    if expect["code"] == 200:
        assert listed(KINDS[path], LabelSelector.parse(text)) == expect["items"]
    else:
        with pytest.raises(SelectorError) as caught:
            LabelSelector.parse(text)
        assert str(caught.value) == expect["message"]


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("", {}, True),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("a=", {"a": ""}, True),
        ("a=", {}, False),
        ("a!=b", {}, True),
        ("a in ()", {"a": ""}, True),
        ("a in (,b)", {"a": ""}, True),
        ("a in (b,,c)", {"a": ""}, True),
        ("a notin (b)", {}, True),
        ("a>3", {"a": "4"}, True),
        ("a>3", {"a": "3"}, False),
        ("a>3", {"a": "x"}, False),
        ("a<3", {}, False),
        ("a<10", {"a": "9"}, True),
        ("in in (in,notin)", {"in": "notin"}, True),
    ],
)
def test_matching(text: str, labels: dict[str, str], matches: bool) -> None:
    assert LabelSelector.parse(text).matches(labels) is matches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b=c", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b=c)", "unable to parse requirement: found '=', expected: ',' or ')'"),
        ("!a in (b)", "found 'in', expected: ',' or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        LabelSelector.parse(text)
    assert str(caught.value) == message


def test_from_message() -> None:
    message = meta.LabelSelector()
    assert LabelSelector.from_message(message).matches({"any": "thing"})
    assert not LabelSelector.from_message(None).matches({})
    message.matchLabels["app"] = "web"
    message.matchExpressions.add(key="tier", operator="NotIn", values=["back"])
    selector = LabelSelector.from_message(message)
    assert str(selector) == "app=web,tier notin (back)"
    assert selector.matches({"app": "web"})
    assert not selector.matches({"app": "web", "tier": "back"})
    message.matchExpressions.add(key="x", operator="Near")
    with pytest.raises(SelectorError, match=r'^"Near" is not a valid label selector operator$'):
        LabelSelector.from_message(message)


def test_a_requirement_names_its_field() -> None:
    with pytest.raises(SelectorError) as caught:
        Requirement.make("a", Operator.IN, (), "spec.terms[0]")
    assert str(caught.value) == (
        "spec.terms[0].values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
    )
    with pytest.raises(
        SelectorError, match=r"^\[values: .*requires one single value, values\[0\]\[a\]: .*\]$"
    ):
        Requirement.make("a", Operator.EQUALS, ("-", "b"))


keys = st.sampled_from(["a", "b.c/d", "in", "notin", "x-1"])
values = st.sampled_from(["", "v", "1", "7", "in", "A.b-c"])
requirements = st.one_of(
    st.builds(Requirement, keys, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
    st.builds(lambda k, o, v: Requirement(k, o, (v,)), keys,
              st.sampled_from([Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS]), values),
    st.builds(lambda k, o, v: Requirement(k, o, tuple(sorted(v))), keys,
              st.sampled_from([Operator.IN, Operator.NOT_IN]), st.sets(values, min_size=1)),
    st.builds(lambda k, o, n: Requirement(k, o, (str(n),)), keys,
              st.sampled_from([Operator.GREATER_THAN, Operator.LESS_THAN]), st.integers(0, 10**6)),
)  # fmt: skip


@given(st.lists(requirements, max_size=5), st.dictionaries(keys, values))
def test_what_is_printed_reads_the_same(some: list[Requirement], labels: dict[str, str]) -> None:
    selector = LabelSelector().adding(*some)
    again = LabelSelector.parse(str(selector))
    assert str(again) == str(selector)
    assert again.matches(labels) == selector.matches(labels) == all(each.matches(labels) for each in some)


@given(st.text(alphabet="ab=!(),<> in\n\\\0", max_size=20))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        LabelSelector.parse(text)
    except SelectorError as error:
        assert str(error)  # noqa: PT017  # anything else that is raised fails the test
    try:
        FieldSelector.parse(text)
    except SelectorError as error:
        assert str(error)  # noqa: PT017  # as above


@pytest.mark.parametrize(
    ("text", "fields", "matches"),
    [
        ("", {}, True),
        ("spec.nodeName=", {}, True),
        ("spec.nodeName!=", {"spec.nodeName": "n1"}, True),
        ("metadata.name==a,metadata.name!=b,,", {"metadata.name": "a"}, True),
        (r"a=x\,y\=z\\", {"a": "x,y=z\\"}, True),
        ("a=1,a=2", {"a": "1"}, False),
    ],
)
def test_field_selectors(text: str, fields: dict[str, str], matches: bool) -> None:
    selector = FieldSelector.parse(text)
    assert selector.matches(fields) is matches
    assert FieldSelector.parse(str(selector)) == selector


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("b=1,a", "invalid selector: 'b=1,a'; can't understand 'a'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ("a=\\x", "invalid field selector: invalid escape sequence: \\x"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_field_selector_errors(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        FieldSelector.parse(text)
    assert str(caught.value) == message


def test_field_selector_conversion() -> None:
    selector = FieldSelector.parse("spec.host=n1,metadata.name!=p")
    converted = selector.transformed(lambda field, value: (field.replace("host", "nodeName"), value))
    assert str(converted) == "metadata.name!=p,spec.nodeName=n1"
