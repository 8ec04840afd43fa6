"""Read the objects of a running cluster that a kubeconfig names: lists only, nothing is written.

lightkube reads the kubeconfig and authenticates: certificates, tokens, exec plugins.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nominee.importing.preparation import LEFT_OUT
from nominee.importing.sources import Document, SourceError
from nominee.lab.extras import installation
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.features.gates import Version

if TYPE_CHECKING:
    import httpx2
    from lightkube.config.kubeconfig import SingleConfig

_SECONDS_MAX = 60.0
_CONNECT_SECONDS_MAX = 10.0
_MINOR = re.compile(r"v?(\d+)\.(\d+)")
_PAGE = 500
_GONE = 410
_TEXT_MAX = 200
_NOT_LISTED = (403, 404, 405, 503)
"""One kind that is not listed is no reason to read no other."""


@dataclass(slots=True)
class LiveState:
    """The objects of a cluster, and why it would not list others: by kind.

    `version` is that of its API server, None if it does not say.
    """

    documents: list[Document] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    version: Version | None = None

    def where(self, document: Document, path: str = "") -> str:
        """Return "": objects of a server have no place."""
        return ""


def read_live(kubeconfig: Path, context: str | None, wanted: Collection[AnyKind] = ()) -> LiveState:
    """Return all objects of a cluster, except for those that its processes make again.

    Args:
        kubeconfig: the file that has the cluster's address and credentials.
        context: which of its contexts; None is the current one.
        wanted: kinds that are read, in the versions that Nominee has; without any all kinds.

    Raises:
        SourceError: the kubeconfig cannot be used, or the cluster does not answer.
    """
    try:
        import httpx2
        from lightkube.config.client_adapter import Client, ConnectionParams
        from lightkube.core.exceptions import ConfigError
    except ImportError:
        raise SourceError(f"--kubeconfig needs lightkube; {installation('import')}") from None
    config = _config(kubeconfig, context)
    timeout = httpx2.Timeout(_SECONDS_MAX, connect=_CONNECT_SECONDS_MAX)
    try:
        with Client(config, ConnectionParams(timeout=timeout)) as http:
            return _read(http, wanted)
    except ConfigError as error:
        raise SourceError(f"{kubeconfig}: {error}") from None
    except httpx2.HTTPStatusError as error:
        answer = error.response
        text = f"{answer.url.path}: {answer.status_code} {_message(answer)}"
        raise SourceError(f"{kubeconfig}: {config.cluster.server} refuses: {text}") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, KeyError, TypeError, ValueError) as error:
        text = f"{config.cluster.server} cannot be read: {error or type(error).__name__}"
        raise SourceError(f"{kubeconfig}: {text}") from None


def _config(kubeconfig: Path, context: str | None) -> SingleConfig:
    """Return one context of a kubeconfig, whose form lightkube does not check. Raises: SourceError."""
    import msgspec
    import yaml
    from lightkube.config.kubeconfig import KubeConfig
    from lightkube.config.models import User

    try:
        found = KubeConfig.from_file(kubeconfig)
    except (AttributeError, KeyError, TypeError, ValueError, msgspec.MsgspecError, yaml.YAMLError):
        raise SourceError(f"{kubeconfig}: is no kubeconfig") from None
    name = context or found.current_context
    if name not in found.contexts:
        contexts = ", ".join(sorted(found.contexts)) or "none"
        problem = f"has no context {name!r}" if name else "has no current context; name one with --context"
        raise SourceError(f"{kubeconfig}: {problem}; its contexts: {contexts}")
    try:
        config = found.get(name)
    except KeyError as error:
        raise SourceError(f"{kubeconfig}: the context {name!r} names {error}, which it lacks") from None
    assert config is not None  # it has the context
    return config._replace(user=config.user or User())


def _read(http: httpx2.Client, wanted: Collection[AnyKind]) -> LiveState:
    state = LiveState(version=_version(http))
    for path, api_version, kind in _resources(http, state.problems, wanted):
        listed = _list(http, path)
        if isinstance(listed, str):
            state.problems[kind] = listed
        else:
            # Items of a list do not repeat them.
            state.documents += [{**each, "apiVersion": api_version, "kind": kind} for each in listed]
    return state


def _version(http: httpx2.Client) -> Version | None:
    answer = http.get("/version")
    found = _MINOR.match(str(answer.json()["gitVersion"])) if answer.is_success else None
    return found and Version(int(found[1]), int(found[2]))


def _resources(
    http: httpx2.Client, problems: dict[str, str], wanted: Collection[AnyKind]
) -> Iterator[tuple[str, str, str]]:
    """Yield path, apiVersion and kind of all kinds that can be listed, of each group in one version.

    A group whose own server does not answer is one of the problems.
    """
    groups = _get(http, "/apis")["groups"]
    for versions in (["v1"], *(_versions(group, wanted) for group in groups)):
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
                if wanted and kind not in wanted:
                    continue
                if kind is not None or row["name"] not in found:
                    found.setdefault(row["name"], (f"{prefix}/{row['name']}", version, row["kind"]))
        yield from found.values()


def _versions(group: Document, wanted: Collection[AnyKind]) -> Sequence[str]:
    """Return the group's versions: those with (wanted) kinds that Nominee has, or else the preferred one."""
    served = [version["groupVersion"] for version in group["versions"]]
    known = {kind.api_version for kind in wanted or kinds.KINDS}
    found = [version for version in served if version in known]
    return found if found or wanted else [group["preferredVersion"]["groupVersion"]]


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
