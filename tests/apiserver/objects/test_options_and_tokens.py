"""Small pure parts: durations, continue tokens, selectable fields, resource versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nominee.apiserver.cache import continue_token
from nominee.apiserver.cache.continue_token import ContinueToken, InvalidToken
from nominee.apiserver.kinds.table import fields_of
from nominee.apiserver.objects.list_options import InvalidResourceVersion, parse_revision
from nominee.apiserver.objects.selectable_fields import UnknownFieldLabel
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import core


def values_of(kind: Kind[Any], obj: Any) -> Mapping[str, str]:
    return fields_of(kind).values(obj)


def field_label(kind: Kind[Any], label: str) -> str:
    return fields_of(kind).key_of(label)


@given(
    st.integers(1, 1 << 62) | st.just(-1),
    st.from_regex(r"[a-z0-9-]{1,20}(/[a-z0-9.-]{1,9}x)?\0?", fullmatch=True),
)
def test_tokens_come_back_as_they_were(revision: int, start: str) -> None:
    token = ContinueToken(revision, start)
    assert continue_token.decode(token.encode()) == token


@given(st.text(max_size=40))
def test_any_text_is_a_token_or_refused(text: str) -> None:
    try:
        token = continue_token.decode(text)
    except InvalidToken:
        return
    assert token.revision
    assert ".." not in token.start.split("/")


@pytest.mark.parametrize(("text", "want"), [("", 0), ("0", 0), ("00", 0), ("17", 17)])
def test_revisions(text: str, want: int) -> None:
    assert parse_revision(text) == want


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x", "invalid syntax"),
        ("-1", "invalid syntax"),
        ("1e3", "invalid syntax"),
        ("9" * 20, "value out of range"),
    ],
)
def test_what_is_no_revision(text: str, problem: str) -> None:
    with pytest.raises(InvalidResourceVersion, match=f'parsing "{text}": {problem}'):
        parse_revision(text)


def test_fields_of_a_pod() -> None:
    pod = core.Pod()
    pod.metadata.name, pod.metadata.namespace = "a", "ns"
    pod.spec.nodeName, pod.spec.hostNetwork = "n1", True
    pod.status.nominatedNodeName = "n2"
    fields = values_of(kinds.POD, pod)
    assert fields["spec.nodeName"] == "n1"
    assert fields["spec.hostNetwork"] == "true"
    assert fields["status.nominatedNodeName"] == "n2"
    assert field_label(kinds.POD, "spec.host") == "spec.nodeName"


def test_an_event_is_found_by_either_groups_names() -> None:
    event = core.Event()
    event.involvedObject.name, event.reportingComponent = "p", "kubelet"
    fields = values_of(kinds.EVENT, event)
    assert fields[field_label(kinds.EVENTS_EVENT, "regarding.name")] == "p"
    assert fields[field_label(kinds.EVENTS_EVENT, "reportingController")] == "kubelet"
    assert fields["source"] == "kubelet"
    with pytest.raises(UnknownFieldLabel, match="field label not supported: involvedObject"):
        field_label(kinds.EVENTS_EVENT, "involvedObject.name")


def test_other_kinds_are_selected_by_name_and_namespace_only() -> None:
    assert field_label(kinds.CONFIG_MAP, "metadata.name") == "metadata.name"
    with pytest.raises(UnknownFieldLabel, match='"data" is not a known field selector: only'):
        field_label(kinds.CONFIG_MAP, "data")
