"""Paths about the server itself: /version, discovery, the list of paths, OpenAPI."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nominee.apiserver.chain import problems
from nominee.apiserver.fronts.rest.answers import documents as answers
from nominee.apiserver.fronts.rest.discovery import groups as discovery
from nominee.apiserver.fronts.rest.http import text
from nominee.apiserver.fronts.rest.http.media import DISCOVERY, JSON, OBJECTS, PROTOBUF, negotiate
from nominee.apiserver.fronts.rest.http.messages import Answer, Request
from nominee.machinery.api.pb import meta
from nominee.machinery.features.gates import Version
from nominee.machinery.process.serving_port.health import ENDPOINTS, HEADERS, SLIS_PATH, TEXT, Health
from nominee.machinery.wire import codec

if TYPE_CHECKING:
    from nominee.apiserver.access.service_accounts import ServiceAccountTokens

_METRICS = "/metrics"
_OPENID = ("/.well-known/openid-configuration", "/openid/v1/jwks")
_GROUP_PARTS = 2


def _document(request: Request, made: dict[str, Any]) -> Answer:
    """Return a discovery document in the negotiated form; Kubernetes' own components accept protobuf."""
    media = negotiate(request.header("accept"))
    if media is None:
        raise problems.not_acceptable(OBJECTS)
    if media.form != PROTOBUF:
        return Answer(answers.encode(media, made, pretty=request.pretty), 200, media.form)
    message = codec.from_json(getattr(meta, made["kind"]), made)
    return Answer(answers.of_message(media, "v1", made["kind"], message), 200, media.form)


def _discovered(parts: list[str]) -> dict[str, Any] | None:
    """Return the document of /api/VERSION, /apis/GROUP or /apis/GROUP/VERSION."""
    if parts[0] == "api":
        return discovery.resource_list("", parts[1]) if len(parts) == _GROUP_PARTS else None
    if len(parts) > _GROUP_PARTS + 1:
        return None
    return discovery.group(parts[1]) if len(parts) == _GROUP_PARTS else discovery.resource_list(*parts[1:])


def is_routed(path: str) -> bool:
    """Report whether upstream's router handles a path: an unknown path below is a 404 with a Status.

    The 404 of other paths is plain text.

    Source: kube-apiserver 1.36, apiserver/pkg/server/handler.go (director).
    """
    parts = path.strip("/").split("/")
    if parts[0] == "apis":
        return len(parts) > 1 and parts[1] in discovery.groups()
    return parts[0] in ("api", "version")


class MetaPaths:
    """Answers these paths; discovery is built at the first request."""

    def __init__(
        self,
        version: Version,
        address: Callable[[], str],
        health: Health,
        accounts: ServiceAccountTokens | None,
    ) -> None:
        self._version = version
        self._address = address
        self._health = health
        self._accounts = accounts
        self._aggregated: dict[bool, tuple[bytes, str]] = {}

    async def answer(self, request: Request) -> Answer | None:
        """Return the response, or None for other paths. Only paths of upstream's router check the method.

        Raises: StatusError 404, 405, 406.
        """
        path = request.path.rstrip("/") or "/"
        if path.startswith("/openapi"):
            from nominee.apiserver.fronts.rest.discovery.openapi import answer

            return answer(request, self._version)
        if path in ("/", "/index.html"):
            return Answer(text.dump_bytes({"paths": self._paths()}, pretty=True))
        if path.partition("/")[2].partition("/")[0] in ENDPOINTS:
            return await self._healthy(request)
        if path in (_METRICS, SLIS_PATH):
            return self._measured(path)
        return self._routed(request, path)

    def _routed(self, request: Request, path: str) -> Answer | None:
        """Return the response of a path that has GET only."""
        parts = path.strip("/").split("/")
        answer: Answer | None = None
        if path == "/version":
            answer = Answer(text.dump_bytes(self.version(), pretty=True))
        elif path in ("/api", "/apis"):
            answer = self._root(request, core=path == "/api")
        elif self._accounts is not None and path in _OPENID:
            answer = self._openid(self._accounts, path)
        elif parts[0] in ("api", "apis"):
            made = _discovered(parts)
            answer = None if made is None else _document(request, made)
        # The aggregator answers /apis and /apis/GROUP, whatever the method.
        aggregated = parts[0] == "apis" and len(parts) <= _GROUP_PARTS
        if answer is not None and request.method != "GET" and not aggregated:
            raise problems.method_not_allowed()
        return answer

    async def _healthy(self, request: Request) -> Answer:
        found = await self._health.answer(request.path, request.query)
        return Answer(found.text.encode(), found.code, TEXT, headers=dict(HEADERS))

    def _measured(self, path: str) -> Answer:
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        body = self._health.slis() if path == SLIS_PATH else generate_latest()
        return Answer(body, content_type=CONTENT_TYPE_LATEST)

    def _openid(self, accounts: ServiceAccountTokens, path: str) -> Answer:
        from nominee.apiserver.fronts.rest.discovery import openid

        if path == openid.KEYS_PATH:
            return openid.keys(accounts)
        return openid.configuration(accounts, self._address())

    def _root(self, request: Request, *, core: bool) -> Answer:
        media = negotiate(request.header("accept"), shown=frozenset({DISCOVERY}))
        if media is None:
            raise problems.not_acceptable(OBJECTS)
        if media.shown_as != DISCOVERY:
            return _document(
                request, discovery.api_versions(self._address()) if core else discovery.group_list()
            )
        if core not in self._aggregated:
            document = discovery.aggregated_discovery(core=core)
            self._aggregated[core] = (text.dump_bytes(document), discovery.etag(document))
        body, etag = self._aggregated[core]
        kind = f"{JSON};g=apidiscovery.k8s.io;v=v2;as={DISCOVERY}"
        headers = {"etag": etag, "cache-control": "public", "vary": "Accept"}
        if request.header("if-none-match") == etag:
            return Answer(b"", 304, kind, headers=headers)
        return Answer(body, 200, kind, headers=headers)

    def version(self) -> dict[str, Any]:
        """Return the document of /version."""
        major, minor = str(self._version).split(".")[:2]
        before = str(int(minor) - 1)
        machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
        return {
            "major": major,
            "minor": minor,
            "emulationMajor": major,
            "emulationMinor": minor,
            "minCompatibilityMajor": major,
            "minCompatibilityMinor": before,
            "gitVersion": f"v{major}.{minor}.0+nominee",
            "gitCommit": "",
            "gitTreeState": "",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "none",
            "compiler": "none",
            "platform": f"{platform.system().lower()}/{machine}",
        }

    def _paths(self) -> list[str]:
        found = ["/api", "/api/v1", "/apis", "/apis/", "/version", _METRICS, SLIS_PATH]
        found += ["/openapi/v2", "/openapi/v3", "/openapi/v3/", *self._health.paths]
        found += _OPENID if self._accounts is not None else ()
        for group, versions in discovery.groups().items():
            found += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
        return sorted(found)
