"""A short fuzz with a fixed profile: the same cases every time. For a long one see the package."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import anyio
import anyio.from_thread
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from nominee.machinery.api.kinds import KINDS
from tests.apiserver.fronts.both import Both
from tests.apiserver.fuzz.player import Player
from tests.apiserver.rest.asgi import Reply
from tests.support.patience import PATIENCE_SECONDS

PROFILE = settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def portal() -> Iterator[anyio.from_thread.BlockingPortal]:
    with anyio.from_thread.start_blocking_portal() as made:
        yield made


@pytest.fixture(scope="module")
def player(portal: anyio.from_thread.BlockingPortal) -> Player:
    return portal.call(Player.started)


@settings(PROFILE, max_examples=80)
@given(seed=st.integers(0, 2**32))
def test_bodies_and_patches_lose_nothing_and_break_nothing(
    portal: anyio.from_thread.BlockingPortal, player: Player, seed: int
) -> None:
    portal.call(player.play, seed)


def test_the_fuzz_gets_through_to_the_rules(portal: anyio.from_thread.BlockingPortal) -> None:
    """It would find nothing if all it makes were refused for its form."""

    async def play() -> Player:
        player = await Player.started()
        for seed in range(40):
            await player.play(seed)
        return player

    codes = portal.call(play).codes
    done = sum(count for key, count in codes.items() if key.endswith((" 200", " 201")))
    judged = sum(count for key, count in codes.items() if key.endswith(" 422"))
    assert done >= 5, codes
    assert judged >= 20, codes


TEXT = st.text(st.sampled_from("abz09AZ.-_/,=!()<> \"'\\%*:{}[]~\n\0é\U0001f600"), max_size=12)
SELECTOR = st.lists(
    st.sampled_from(
        [
            "a",
            "b/c",
            "in",
            "notin",
            "(",
            ")",
            ",",
            "=",
            "==",
            "!=",
            "!",
            ">",
            "<",
            " ",
            "1",
            "metadata.name",
            "x" * 70,
        ]
    )
    | TEXT,
    max_size=8,
).map("".join)
NUMBER = st.one_of(
    st.integers(-(2**70), 2**70).map(str), TEXT, st.sampled_from(["", "0", "1", "٣", "1_0", "+1"])
)
TOKEN = st.one_of(
    TEXT,
    st.binary(max_size=20).map(lambda data: base64.urlsafe_b64encode(data).decode()),
    st.recursive(
        st.none() | st.integers() | TEXT,
        lambda inner: st.dictionaries(st.sampled_from(["v", "rv", "start"]), inner, max_size=3),
        max_leaves=4,
    ).map(lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).decode()),
    st.tuples(NUMBER, TEXT).map(
        lambda pair: base64.urlsafe_b64encode(
            json.dumps({"v": "meta.k8s.io/v1", "rv": pair[0], "start": pair[1]}).encode()
        ).decode()
    ),
)
QUERY = st.fixed_dictionaries(
    {},
    optional={
        "labelSelector": SELECTOR,
        "fieldSelector": SELECTOR,
        "resourceVersion": NUMBER,
        "resourceVersionMatch": st.sampled_from(["", "Exact", "NotOlderThan", "x"]),
        "limit": NUMBER,
        "continue": TOKEN,
        "watch": st.sampled_from(["0", "1", "true", "x"]),
        "timeoutSeconds": st.just("1"),
        "sendInitialEvents": st.sampled_from(["true", "false", "x"]),
        "allowWatchBookmarks": st.sampled_from(["true", "x"]),
        "includeObject": st.sampled_from(["None", "x"]),
        "pretty": st.sampled_from(["1", "x"]),
    },
)
ACCEPT = st.sampled_from(
    [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "*/*",
        "text/html",
        ";;;q=x,",
    ]
)


def _asked(both: Both, path: str, query: dict[str, Any], accept: str) -> Reply:
    """The answer; a watch that goes on is left at once."""

    async def ask() -> Reply:
        reply = Reply()
        begun = anyio.Event()
        left = anyio.Event()

        async def receive() -> dict[str, Any]:
            if not begun.is_set():
                begun.set()
                return {"type": "http.request", "body": b"", "more_body": False}
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                reply.code = message["status"]
            else:
                reply.pieces.append(message.get("body", b""))
                if query.get("watch", "0") != "0":
                    left.set()

        from urllib.parse import urlencode

        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": urlencode(query).encode(),
            "headers": [(b"accept", accept.encode())],
        }
        with anyio.fail_after(PATIENCE_SECONDS):
            await both.rest.rest.front(scope, receive, send)
        return reply

    return both.rest._portal.call(ask)


@settings(PROFILE, max_examples=150)
@given(query=QUERY, accept=ACCEPT, index=st.integers(0, 10_000), named=st.booleans())
def test_what_lists_and_watches_are_asked(
    both: Both,
    query: dict[str, str],
    accept: str,
    index: int,
    named: bool,
) -> None:
    if query.get("resourceVersion", "").isdecimal() and len(query["resourceVersion"]) > 3:
        # A revision of the future is waited for.
        del query["resourceVersion"]
    kind = KINDS[index % len(KINDS)]
    base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    path = f"{base}/{kind.plural}"
    if named and kind.namespaced:
        path = f"{base}/namespaces/default/{kind.plural}"
    reply = _asked(both, path, query, accept)
    # Upstream answers an invalid resourceVersion of a watch or a get with 500.
    assert reply.code < 500 or b"Internal error" not in reply.body, (path, query, reply.body)
    assert reply.code != 500 or b"resourceVersion: Invalid value" in reply.body, (path, query, reply.body)


@settings(PROFILE, max_examples=100)
@given(
    parts=st.lists(
        st.sampled_from(
            ["api", "apis", "v1", "apps", "namespaces", "default", "pods", "status", "watch", "proxy"]
        )
        | st.sampled_from(
            ["openapi", "v3", "v2", "version", "..", ".", "", "metrics", "healthz", "scale", "log"]
        )
        | TEXT,
        max_size=7,
    ),
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "X"]),
    body=st.sampled_from([b"", b"{}", b"null", b"[]", b"x", b'{"kind":"Pod","apiVersion":"v1"}']),
)
def test_paths(both: Both, parts: list[str], method: str, body: bytes) -> None:
    path = "/" + "/".join(parts)
    reply = both.rest._portal.call(both.rest.rest.request, method, path, {"timeoutSeconds": "1"}, body, {})
    assert reply.code < 500 or reply.code == 501, (method, path, reply.body)


@settings(PROFILE, max_examples=100)
@given(
    amount=st.from_regex(
        r"[+-]?[0-9]{0,40}(\.[0-9]{0,40})?([eE][+-]?[0-9]{0,12}|[nuµmkMGTPE]i?)?", fullmatch=True
    )
    | TEXT
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
)
def test_quantities(both: Both, amount: Any) -> None:
    pod = {
        "metadata": {"generateName": "q-"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": amount}}}]},
    }
    # An exponent that is written out would take forever.
    reply = both.rest._portal.call(both.rest.rest.json, "POST", "/api/v1/namespaces/default/pods", pod)
    assert reply.code in (201, 400, 422), (amount, reply.body)
