"""Lists and watches through both fronts; each test runs over gRPC and over REST against the same server."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.machinery.api.kinds import (
    CONFIG_MAP,
    NAMESPACE,
)
from tests.apiserver.fronts.adapter import END, Api
from tests.apiserver.fronts.both import Both
from tests.apiserver.fronts.documents import STREAMED_LIST, config_map, made


def test_lists_select_and_page(api: Api, space: str) -> None:
    for number in range(7):
        labels = {"even": str(number % 2 == 0).lower()}
        made(api.create(CONFIG_MAP, config_map(f"c{number}", labels=labels), space))
    assert api.list(CONFIG_MAP, space).names == [f"c{number}" for number in range(7)]
    assert api.list(CONFIG_MAP, space, labelSelector="even=true").names == ["c0", "c2", "c4", "c6"]
    assert api.list(CONFIG_MAP, space, labelSelector="even notin (true)").names == ["c1", "c3", "c5"]
    assert api.list(CONFIG_MAP, space, fieldSelector="metadata.name=c3").names == ["c3"]
    names, version, token = [], "", ""
    for remaining in (4, 1, None):
        options = {"continue": token} if token else {}
        page = api.list(CONFIG_MAP, space, limit=3, **options)
        made(page)
        names += page.names
        assert page.metadata.get("remainingItemCount") == remaining
        assert version in ("", page.metadata["resourceVersion"])
        version, token = page.metadata["resourceVersion"], page.metadata.get("continue", "")
        if remaining == 4:
            # What comes later is not in the pages of an older list.
            made(api.create(CONFIG_MAP, config_map("c35"), space))
    assert (names, token) == ([f"c{number}" for number in range(7)], "")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"labelSelector": "a in ("}, 400),
        ({"labelSelector": "-=x"}, 400),
        ({"fieldSelector": "spec.nope=1"}, 400),
        ({"fieldSelector": "nonsense"}, 400),
        ({"continue": "nonsense"}, 400),
        ({"continue": "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTUsInN0YXJ0IjoiLi4vLi4vIn0"}, 400),
        ({"resourceVersion": "x"}, 400),
        ({"resourceVersion": "-1"}, 400),
        ({"resourceVersionMatch": "Exact"}, 422),
        ({"resourceVersionMatch": "Nearly", "resourceVersion": "1"}, 422),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, 422),
        ({"resourceVersion": "9000000000"}, 504),
    ],
)
@pytest.mark.usefixtures("impatient")
def test_invalid_list_options(api: Api, space: str, options: dict[str, Any], code: int) -> None:
    outcome = api.list(CONFIG_MAP, space, **options)
    assert outcome.code == code, outcome
    assert outcome.document["status"] == "Failure"


def test_resource_versions_of_reads(api: Api, space: str) -> None:
    first = made(api.create(CONFIG_MAP, config_map("a", {"k": "1"}), space))["metadata"]["resourceVersion"]
    second = made(api.patch(CONFIG_MAP, "a", {"data": {"k": "2"}}, space))["metadata"]["resourceVersion"]

    def data(**options: str) -> list[Any]:
        return [item.get("data") for item in made(api.list(CONFIG_MAP, space, **options))["items"]]

    assert data() == [{"k": "2"}]
    assert data(resourceVersion=second) == [{"k": "2"}]
    assert data(resourceVersion=first, resourceVersionMatch="Exact") == [{"k": "1"}]
    assert data(resourceVersion=first, resourceVersionMatch="NotOlderThan") == [{"k": "2"}]
    assert made(api.get(CONFIG_MAP, "a", space, resourceVersion=second))["data"] == {"k": "2"}
    assert api.get(CONFIG_MAP, "a", space, resourceVersion="x").code in (400, 500)


@pytest.mark.usefixtures("impatient")
def test_a_future_revision_times_out(api: Api, both: Both) -> None:
    assert api.get(NAMESPACE, "default", resourceVersion="9000000000").code == 504
    assert both.cache.revision < 9000000000


def test_a_watch_reports_every_change_in_order(api: Api, space: str) -> None:
    start = made(api.list(CONFIG_MAP, space))["metadata"]["resourceVersion"]
    made(api.create(CONFIG_MAP, config_map("before"), space))
    with api.watch(CONFIG_MAP, space, resourceVersion=start) as stream:
        made(api.create(CONFIG_MAP, config_map("a"), space))
        made(api.patch(CONFIG_MAP, "a", {"data": {"k": "1"}}, space))
        api.delete(CONFIG_MAP, "a", space)
        events = [stream.next() for _ in range(4)]
    assert [(event.type, event.document["metadata"]["name"]) for event in events] == [
        ("ADDED", "before"),
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
    ]
    versions = [int(event.document["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))


def test_a_watch_with_a_selector_sees_objects_come_and_go(api: Api, space: str) -> None:
    start = made(api.list(CONFIG_MAP, space))["metadata"]["resourceVersion"]
    with api.watch(CONFIG_MAP, space, resourceVersion=start, labelSelector="on=yes") as stream:
        made(api.create(CONFIG_MAP, config_map("a"), space))
        for value in ("yes", "no"):
            made(api.patch(CONFIG_MAP, "a", {"metadata": {"labels": {"on": value}}}, space))
        events = [stream.next() for _ in range(2)]
    assert [event.type for event in events] == ["ADDED", "DELETED"]
    assert events[1].document["metadata"]["labels"] == {"on": "yes"}


def test_a_watch_ends_when_its_time_is_up_and_goes_on_from_a_bookmark(api: Api, space: str) -> None:
    made(api.create(CONFIG_MAP, config_map("a"), space))
    seen = []
    with api.watch(CONFIG_MAP, space, allowWatchBookmarks=True, timeoutSeconds=1) as stream:
        while (event := stream.next()) is not END:
            seen.append(event)
    assert [event.type for event in seen][:2] == ["ADDED", "BOOKMARK"]
    made(api.create(CONFIG_MAP, config_map("b"), space))
    since = seen[-1].document["metadata"]["resourceVersion"]
    with api.watch(CONFIG_MAP, space, resourceVersion=since) as stream:
        assert stream.next().document["metadata"]["name"] == "b"


def test_a_streamed_list(api: Api, space: str) -> None:
    made(api.create(CONFIG_MAP, config_map("a"), space))
    with api.watch(CONFIG_MAP, space, **STREAMED_LIST) as stream:
        first, end = stream.next(), stream.next()
    assert (first.type, first.document["metadata"]["name"], end.type) == ("ADDED", "a", "BOOKMARK")
    assert end.document["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    with api.watch(CONFIG_MAP, space, sendInitialEvents=True) as stream:
        failed = stream.next()
    assert (failed.type, failed.document["code"]) == ("REFUSED", 422)


def test_a_watch_from_a_compacted_revision_is_gone(api: Api, space: str) -> None:
    made(api.create(CONFIG_MAP, config_map("a"), space))
    for number in range(101):
        made(api.patch(CONFIG_MAP, "a", {"data": {"k": str(number)}}, space))
    with api.watch(CONFIG_MAP, space, resourceVersion="1") as stream:
        event = stream.next()
    assert event.type in ("ERROR", "REFUSED")
    assert (event.document["code"], event.document["reason"]) == (410, "Expired")
