"""Health endpoints: what they answer, and what is counted of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio
import pytest

from nominee.machinery.process.serving_port import health
from nominee.machinery.process.serving_port.health import Health, TimedWork
from nominee.machinery.runtime.clock import FakeClock


def broken() -> None:
    raise RuntimeError("no answer from etcd")


@pytest.fixture
def checks() -> Health:
    """`etcd` fails; `informer-sync` is asked for readiness alone."""
    made = Health()
    made.add("etcd", broken)
    made.add("poststarthook/rbac/bootstrap-roles", lambda: None)
    made.add("informer-sync", lambda: None, ["readyz"])
    return made


GOOD = "[+]ping ok\n[+]etcd excluded: ok\n[+]poststarthook/rbac/bootstrap-roles ok\n"


@pytest.mark.parametrize(
    ("path", "query", "code", "text"),
    [
        (
            "/healthz",
            {},
            500,
            "[+]ping ok\n[-]etcd failed: reason withheld\n[+]poststarthook/rbac/bootstrap-roles ok\n"
            "healthz check failed\n",
        ),
        ("/livez", {"exclude": ["etcd"]}, 200, "ok"),
        ("/livez", {"exclude": ["etcd"], "verbose": [""]}, 200, f"{GOOD}livez check passed\n"),
        (
            "/readyz",
            {"exclude": ["etcd"], "verbose": [""]},
            200,
            f"{GOOD}[+]informer-sync ok\nreadyz check passed\n",
        ),
        (
            "/livez",
            {"exclude": ["etcd", "nope", "informer-sync"], "verbose": ["1"]},
            200,
            f"{GOOD}warn: some health checks cannot be excluded: no matches for"
            ' "informer-sync", "nope"\nlivez check passed\n',
        ),
        ("/livez/ping", {}, 200, "ok"),
        ("/healthz/etcd", {}, 500, "internal server error: no answer from etcd\n"),
        ("/healthz/poststarthook/rbac/bootstrap-roles", {}, 200, "ok"),
        ("/healthz/informer-sync", {}, 404, "404 page not found\n"),
        ("/readyz/nope", {}, 404, "404 page not found\n"),
        ("/startupz", {}, 404, "404 page not found\n"),
    ],
)
async def test_answers(
    checks: Health, path: str, query: Mapping[str, Sequence[str]], code: int, text: str
) -> None:
    answer = await checks.answer(path, query)
    assert (answer.code, answer.text) == (code, text)


async def test_a_check_that_hangs_has_failed(checks: Health, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "CHECK_SECONDS_MAX", 0.01)
    checks.add("slow", anyio.sleep_forever)
    answer = await checks.answer("/livez/slow", {})
    assert (answer.code, answer.text) == (500, "internal server error: no answer in 0.01 s\n")


def test_work_that_takes_too_long() -> None:
    clock = FakeClock()
    work = TimedWork(clock, 5.0, "too long")
    with work:
        clock.set(clock.now() + 5)
        work.check()
        clock.set(clock.now() + 1)
        with pytest.raises(RuntimeError, match="too long"):
            work.check()
    work.check()


def test_paths(checks: Health) -> None:
    assert "/readyz/informer-sync" in checks.paths
    assert "/livez/informer-sync" not in checks.paths
    assert {"/healthz", "/livez/etcd", "/readyz/poststarthook/rbac/bootstrap-roles"} <= set(checks.paths)


async def test_slis_count_what_endpoints_found(checks: Health) -> None:
    for _ in range(3):
        await checks.answer("/livez", {})
    await checks.answer("/readyz", {"exclude": ["etcd"]})
    # A check alone is not counted.
    await checks.answer("/healthz/etcd", {})
    lines = checks.slis().decode().splitlines()
    assert 'kubernetes_healthcheck{name="etcd",type="livez"} 0.0' in lines
    assert 'kubernetes_healthcheck{name="ping",type="livez"} 1.0' in lines
    assert 'kubernetes_healthchecks_total{name="etcd",status="error",type="livez"} 3.0' in lines
    assert 'kubernetes_healthchecks_total{name="informer-sync",status="success",type="readyz"} 1.0' in lines
    assert not any("healthz" in line for line in lines)
    assert not any('name="etcd"' in line and "readyz" in line for line in lines)
    assert (
        "# HELP kubernetes_healthchecks_total [STABLE] This metric records the results of all healthcheck."
        in lines
    )
    assert "# TYPE kubernetes_healthcheck gauge" in lines
