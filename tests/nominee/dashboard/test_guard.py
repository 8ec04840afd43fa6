"""Who may use the dashboard: hosts, origins, the cookie, and the headers of every answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from nominee.dashboard.guard import Guard, Secrets
from nominee.machinery.process.http.http_guard import Message, Receive, Scope, Send

SECRETS = Secrets("the-token")
HOST = "127.0.0.1:8001"
COOKIE = f"nominee-dashboard-8001={SECRETS.session}"


@dataclass
class Answer:
    status: int
    headers: Mapping[bytes, bytes]
    body: bytes


async def page(_: Scope, __: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"page"})


async def ask(path: str = "/", query: str = "", **headers: str) -> Answer:
    """Ask the guarded page; names of headers have _ for -."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        sent.append(message)

    given = {"host": HOST, **{name.replace("_", "-"): value for name, value in headers.items()}}
    pairs = [(name.encode(), value.encode()) for name, value in given.items() if value]
    scope = {"type": "http", "path": path, "query_string": query.encode(), "headers": pairs}
    await Guard(page, SECRETS, 8001)(scope, receive, send)
    return Answer(sent[0]["status"], dict(sent[0]["headers"]), b"".join(each["body"] for each in sent[1:]))


async def test_the_url_with_the_token_sets_a_cookie_that_no_script_reads() -> None:
    answer = await ask(query="token=the-token")
    assert (answer.status, answer.headers[b"location"]) == (303, b"/")
    cookie = answer.headers[b"set-cookie"].decode()
    assert cookie == f"{COOKIE}; HttpOnly; SameSite=Strict; Path=/"
    assert "the-token" not in cookie
    assert (await ask(cookie=cookie.partition(";")[0])).body == b"page"


@pytest.mark.parametrize("query", ["token=other", "token=", ""])
async def test_another_token_opens_nothing(query: str) -> None:
    answer = await ask(query=query)
    assert answer.status == 401
    assert b"set-cookie" not in answer.headers
    assert b"nominee dashboard" in answer.body


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        "nominee-dashboard-8001=",
        f"nominee-dashboard-8002={SECRETS.session}",
        "a=b; =;;",
        "é",
        f'x="{COOKIE}"',
    ],
)
async def test_without_the_cookie_nothing_is_answered(cookie: str) -> None:
    assert (await ask("/api/timeline", cookie=cookie)).status == 401


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        ({}, "/", 200),
        ({"host": "localhost:8001"}, "/", 200),
        ({"host": "[::1]:8001"}, "/", 403),
        ({"host": "evil.example:8001"}, "/", 403),
        ({"host": "127.0.0.1:8002"}, "/", 403),
        ({"host": "127.0.0.1"}, "/", 403),
        ({"host": ""}, "/", 403),
        ({"origin": "http://127.0.0.1:8001"}, "/api/actions/delete", 200),
        ({"origin": "http://localhost:8001"}, "/api/actions/delete", 403),
        ({"origin": "https://127.0.0.1:8001"}, "/api/actions/delete", 403),
        ({"origin": "http://evil.example"}, "/api/actions/delete", 403),
        ({"origin": "null"}, "/", 403),
        ({"sec_fetch_site": "same-origin"}, "/api/timeline", 200),
        ({"sec_fetch_site": "none"}, "/api/timeline", 200),
        # Another port of 127.0.0.1 is the same site.
        ({"sec_fetch_site": "same-site"}, "/api/timeline", 403),
        ({"sec_fetch_site": "cross-site"}, "/api/events", 403),
        ({"sec_fetch_site": "cross-site"}, "/", 200),
    ],
)
async def test_a_foreign_page_is_refused_even_with_the_cookie(
    headers: dict[str, str], path: str, status: int
) -> None:
    assert (await ask(path, cookie=COOKIE, **headers)).status == status


@pytest.mark.parametrize("headers", [{}, {"cookie": COOKIE}, {"host": "evil.example"}])
async def test_every_answer_has_the_headers_that_protect(headers: dict[str, str]) -> None:
    found = (await ask(**headers)).headers
    policy = found[b"content-security-policy"].decode()
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert found[b"x-content-type-options"] == b"nosniff"
    assert found[b"referrer-policy"] == b"no-referrer"
    assert found[b"cache-control"] == b"no-store"


async def test_health_is_open_and_says_nothing() -> None:
    answer = await ask("/healthz", host="localhost")
    assert (answer.status, answer.body) == (200, b'{"message": "ok"}')


def test_a_restarted_process_knows_its_pages() -> None:
    assert Secrets("a").session == Secrets("a").session
    assert len({Secrets("a").session, Secrets("a").action, Secrets("b").session}) == 3
