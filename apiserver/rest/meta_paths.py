"""Paths that are about the server itself: /version, discovery, the list of paths, OpenAPI."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

from apiserver.rest import answers, discovery, problems, text
from apiserver.rest.http import Answer, Request
from apiserver.rest.media import DISCOVERY, JSON, OBJECTS, PROTOBUF, negotiate
from machinery.pb import meta
from machinery.versions import Version
from machinery.wire import codec

_HEALTH = ("/healthz", "/livez", "/readyz", "/metrics")


def is_health(path: str) -> bool:
    """Paths that the process's own serving port answers too."""
    return any(path == each or path.startswith(f"{each}/") for each in _HEALTH)


def _document(request: Request, made: dict[str, Any]) -> Answer:
    """A discovery document in the form that is wanted; real components want protobuf."""
    media = negotiate(request.header("accept"))
    if media is None:
        raise problems.not_acceptable(OBJECTS)
    if media.form != PROTOBUF:
        return Answer(answers.encode(media, made, pretty=request.pretty), 200, media.form)
    message = codec.from_json(getattr(meta, made["kind"]), made)
    return Answer(answers.of_message(media, "v1", made["kind"], message), 200, media.form)


class MetaPaths:
    """Answers them; all is made when it is asked for the first time."""

    def __init__(self, version: Version, address: Callable[[], str]) -> None:
        self._version = version
        self._address = address
        self._aggregated: dict[bool, tuple[bytes, str]] = {}

    def answer(self, request: Request) -> Answer | None:
        """None for a path that is none of these. Raises StatusError 404, 405, 406."""
        path = request.path.rstrip("/") or "/"
        parts = path.strip("/").split("/")
        if path.startswith("/openapi"):
            from apiserver.rest.openapi import answer

            return answer(request, self._version)
        if path == "/version":
            return Answer(text.dump_bytes(self.version(), pretty=True))
        if path == "/":
            return Answer(text.dump_bytes({"paths": self._paths()}, pretty=True))
        if parts[0] not in ("api", "apis") or len(parts) > 3:
            return None
        if request.method != "GET":
            raise problems.method_not_allowed()
        if path in ("/api", "/apis"):
            return self._root(request, core=path == "/api")
        made = None
        if parts[0] == "api" and len(parts) == 2:
            made = discovery.resource_list("", parts[1])
        elif parts[0] == "apis":
            made = (
                discovery.group(parts[1]) if len(parts) == 2 else discovery.resource_list(parts[1], parts[2])
            )
        return None if made is None else _document(request, made)

    def _root(self, request: Request, *, core: bool) -> Answer:
        media = negotiate(request.header("accept"), shown=frozenset({DISCOVERY}))
        if media is None:
            raise problems.not_acceptable(OBJECTS)
        if media.shown_as != DISCOVERY:
            return _document(
                request, discovery.api_versions(self._address()) if core else discovery.group_list()
            )
        if core not in self._aggregated:
            document = discovery.aggregated(core=core)
            self._aggregated[core] = (text.dump_bytes(document), discovery.etag(document))
        body, etag = self._aggregated[core]
        kind = f"{JSON};g=apidiscovery.k8s.io;v=v2;as={DISCOVERY}"
        headers = {"etag": etag, "cache-control": "public", "vary": "Accept"}
        if request.header("if-none-match") == etag:
            return Answer(b"", 304, kind, headers=headers)
        return Answer(body, 200, kind, headers=headers)

    def version(self) -> dict[str, Any]:
        """/version."""
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
        found = ["/api", "/api/v1", "/apis", "/apis/", *_HEALTH, "/openapi/v2", "/openapi/v3", "/version"]
        for group, versions in discovery.groups().items():
            found += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
        return sorted(found)
