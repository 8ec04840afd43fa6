"""Health endpoints as Kubernetes' components have them: named checks, and how often each passed.

    GET /healthz, /livez, /readyz      "ok", or 500 with a line a check
        ?verbose                       a line a check also where all pass
        ?exclude=NAME                  without that check; may come several times
    GET /healthz/NAME, ...             one check alone; its error is shown
    GET /metrics/slis                  kubernetes_healthcheck, kubernetes_healthchecks_total

Source: k8s.io/apiserver 1.36, pkg/server/healthz/healthz.go; component-base, metrics/prometheus/slis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio

from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import Clock

if TYPE_CHECKING:
    from prometheus_client.core import Metric

Check = Callable[[], Awaitable[None] | None]
ENDPOINTS: Final = ("healthz", "livez", "readyz")
SLIS_PATH: Final = "/metrics/slis"
CHECK_SECONDS_MAX = 5.0
TEXT: Final = "text/plain; charset=utf-8"
HEADERS: Final = {"x-content-type-options": "nosniff"}
_log = logs.get()


def prometheus_text(metrics: Sequence[Metric]) -> bytes:
    """Return metrics in Prometheus' text format."""
    from prometheus_client import CollectorRegistry, generate_latest

    class Collector:
        def collect(self) -> Sequence[Metric]:
            return metrics

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector())
    return generate_latest(registry)


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    """The answer of a health endpoint, in `TEXT` with `HEADERS`."""

    code: int
    text: str


NOT_FOUND: Final = HealthAnswer(404, "404 page not found\n")


class Health:
    """The checks of one server. Without `check`s of its own an endpoint has the check `ping`."""

    def __init__(self) -> None:
        self._checks: dict[str, dict[str, Check]] = {endpoint: {"ping": _ping} for endpoint in ENDPOINTS}
        self._counts: Counter[tuple[str, str, bool]] = Counter()
        self._last: dict[tuple[str, str], bool] = {}

    def add(self, name: str, check: Check, endpoints: Sequence[str] = ENDPOINTS) -> None:
        """Add a named check to endpoints; it fails by raising, or by taking longer than CHECK_SECONDS_MAX."""
        for endpoint in endpoints:
            self._checks[endpoint][name] = check

    @property
    def paths(self) -> list[str]:
        """All paths of health checks."""
        return [
            path
            for endpoint, checks in self._checks.items()
            for path in (f"/{endpoint}", *(f"/{endpoint}/{name}" for name in checks))
        ]

    async def answer(self, path: str, query: Mapping[str, Sequence[str]]) -> HealthAnswer:
        """Run the checks of a path (`/livez`, `/livez/ping`); 404 for other paths."""
        endpoint, _, name = path.removeprefix("/").partition("/")
        checks = self._checks.get(endpoint)
        if checks is None:
            return NOT_FOUND
        if name:
            check = checks.get(name)
            return await _alone(check) if check is not None else NOT_FOUND
        return await self._all(endpoint, checks, query)

    async def _all(
        self, endpoint: str, checks: Mapping[str, Check], query: Mapping[str, Sequence[str]]
    ) -> HealthAnswer:
        excluded = set(query.get("exclude", ()))
        lines: list[str] = []
        failed: list[str] = []
        for name, check in list(checks.items()):
            if name in excluded:
                excluded.remove(name)
                lines.append(f"[+]{name} excluded: ok")
                continue
            problem = await _problem(check)
            self._observe(endpoint, name, problem is None)
            if problem is None:
                lines.append(f"[+]{name} ok")
            else:
                failed.append(name)
                # The endpoint is public; the path of the check alone shows its error.
                lines.append(f"[-]{name} failed: reason withheld")
                _log.debug("Health check failed", endpoint=endpoint, check=name, error=problem)
        if excluded:
            names = ", ".join(f'"{name}"' for name in sorted(excluded))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        if failed:
            return HealthAnswer(500, "\n".join([*lines, f"{endpoint} check failed", ""]))
        if "verbose" in query:
            return HealthAnswer(200, "\n".join([*lines, f"{endpoint} check passed", ""]))
        return HealthAnswer(200, "ok")

    def _observe(self, endpoint: str, name: str, passed: bool) -> None:
        self._counts[endpoint, name, passed] += 1
        self._last[endpoint, name] = passed

    def slis(self) -> bytes:
        """Return the counts of all checks in Prometheus' text format."""
        return prometheus_text(list(self.collect()))

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the last checks, as upstream names them."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        results = GaugeMetricFamily(
            "kubernetes_healthcheck",
            "[STABLE] This metric records the result of a single healthcheck.",
            labels=["name", "type"],
        )
        for (endpoint, name), passed in sorted(self._last.items()):
            results.add_metric([name, endpoint], float(passed))
        yield results
        counts = CounterMetricFamily(
            "kubernetes_healthchecks",
            "[STABLE] This metric records the results of all healthcheck.",
            labels=["name", "status", "type"],
        )
        for (endpoint, name, passed), count in sorted(self._counts.items()):
            counts.add_metric([name, "success" if passed else "error", endpoint], count)
        yield counts


class TimedWork:
    """A check that fails while one round of work takes too long: `with work:` around the round."""

    def __init__(self, clock: Clock, seconds_max: float, problem: str) -> None:
        self._clock = clock
        self._seconds_max = seconds_max
        self._problem = problem
        self._since: float | None = None

    def __enter__(self) -> None:
        self._since = self._clock.monotonic()

    def __exit__(self, *_: object) -> None:
        self._since = None

    def check(self) -> None:
        """Raise RuntimeError if the present round takes too long."""
        if self._since is not None and self._clock.monotonic() - self._since > self._seconds_max:
            raise RuntimeError(self._problem)


def _ping() -> None:
    """The process answers."""


async def _alone(check: Check) -> HealthAnswer:
    problem = await _problem(check)
    if problem is not None:
        return HealthAnswer(500, f"internal server error: {problem}\n")
    return HealthAnswer(200, "ok")


async def _problem(check: Check) -> str | None:
    """Return why a check fails, or None."""
    try:
        with anyio.fail_after(CHECK_SECONDS_MAX):
            result = check()
            if result is not None:
                await result
    except TimeoutError as error:
        return str(error) or f"no answer in {CHECK_SECONDS_MAX:g} s"
    except Exception as error:  # noqa: BLE001  # whatever a check raises is its verdict
        return str(error) or type(error).__name__
    return None
