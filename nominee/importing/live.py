"""Read the objects of a running cluster that a kubeconfig names: lists only, nothing is written.

lightkube reads the kubeconfig and authenticates: certificates, tokens, exec plugins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nominee.importing.preparation import LEFT_OUT
from nominee.importing.sources import Document, SourceError
from nominee.lab.extras import installation
from nominee.machinery.api import kinds

if TYPE_CHECKING:
    import httpx2

_SECONDS_MAX = 60.0
_PAGE = 500
_GONE = 410
_TEXT_MAX = 200
_NOT_LISTED = (403, 404, 405, 503)
"""One kind that is not listed is no reason to read no other."""


@dataclass(slots=True)
class LiveState:
    """The objects of a cluster, and why it would not list others: by kind."""

    objects: list[Document] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)


def read_live(kubeconfig: Path, context: str | None) -> LiveState:
    """Return all objects of a cluster, except for those that its processes make again.

    Raises:
        SourceError: the kubeconfig cannot be used, or the cluster does not answer.
    """
    try:
        import httpx2
        from lightkube.config.client_adapter import Client, ConnectionParams
        from lightkube.config.kubeconfig import KubeConfig
        from lightkube.core.exceptions import ConfigError
    except ImportError:
        raise SourceError(f"--kubeconfig needs lightkube; {installation('import')}") from None
    try:
        config = KubeConfig.from_file(kubeconfig).get(context)
    except (AttributeError, KeyError, TypeError):  # lightkube does not check the form
        config = None
    except ConfigError as error:
        raise SourceError(f"{kubeconfig}: {error}") from None
    if config is None:
        raise SourceError(f"{kubeconfig}: is no kubeconfig, or has no such context")
    try:
        parameters = ConnectionParams(timeout=httpx2.Timeout(_SECONDS_MAX))
        with Client(config, parameters) as http:
            return _read(http)
    except ConfigError as error:
        raise SourceError(f"{kubeconfig}: {error}") from None
    except (httpx2.HTTPError, OSError, ValueError) as error:
        raise SourceError(f"{kubeconfig}: the cluster cannot be read: {error}") from None


def _read(http: httpx2.Client) -> LiveState:
    state = LiveState()
    for path, api_version, kind in _resources(http, state.problems):
        listed = _list(http, path)
        if isinstance(listed, str):
            state.problems[kind] = listed
        else:
            # Items of a list do not repeat them.
            state.objects += [{**each, "apiVersion": api_version, "kind": kind} for each in listed]
    return state


def _resources(http: httpx2.Client, problems: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield path, apiVersion and kind of all kinds that can be listed, of each group in one version.

    A group whose own server does not answer is one of the problems.
    """
    groups = _get(http, "/apis")["groups"]
    for versions in (["v1"], *(_versions(group) for group in groups)):
        found: dict[str, tuple[str, str, str]] = {}
        for version in versions:
            prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
            answer = http.get(prefix)
            if answer.status_code in _NOT_LISTED:
                problems[version] = _message(answer)
                continue
            for row in answer.raise_for_status().json()["resources"]:
                if "/" in row["name"] or "list" not in row.get("verbs", ()) or row["kind"] in LEFT_OUT:
                    continue
                kind = kinds.by_kind(version, row["kind"])
                if kind is not None or row["name"] not in found:
                    found.setdefault(row["name"], (f"{prefix}/{row['name']}", version, row["kind"]))
        yield from found.values()


def _versions(group: Document) -> Sequence[str]:
    """Return the group's versions: those with kinds that Nominee has, or else the preferred one."""
    served = [version["groupVersion"] for version in group["versions"]]
    known = {kind.api_version for kind in kinds.KINDS}
    return [version for version in served if version in known] or [group["preferredVersion"]["groupVersion"]]


def _list(http: httpx2.Client, path: str) -> list[Document] | str:
    """Return all objects of a kind, page by page, or why they are not listed."""
    items: list[Document] = []
    parameters: dict[str, str] = {"limit": str(_PAGE)}
    while True:
        answer = http.get(path, params=parameters)
        if answer.status_code == _GONE and "continue" in parameters:
            items, parameters = [], {}  # the pages' revision is gone: all at once
            continue
        if answer.status_code in _NOT_LISTED:
            return _message(answer)
        page = answer.raise_for_status().json()
        items += page.get("items") or ()
        token = page["metadata"].get("continue")
        if not token:
            return items
        parameters = {"limit": str(_PAGE), "continue": token}


def _message(answer: httpx2.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):  # of a proxy, not of an API server
        return f"status {answer.status_code}: {answer.text[:_TEXT_MAX]}"


def _get(http: httpx2.Client, path: str) -> Document:
    document: Document = http.get(path).raise_for_status().json()
    return document
