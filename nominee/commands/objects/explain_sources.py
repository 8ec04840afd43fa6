"""The clusters that `nominee explain` reads as objects: a file, a kubeconfig's cluster, or a directory's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nominee.commands.common import read_live_state

if TYPE_CHECKING:
    from nominee.explain.files import ClusterFile, Manifest
    from nominee.machinery.client.api_client import Client

_NOT_SERVED = (404, 405)
_NEEDED = ("Node", "Pod")


@dataclass(frozen=True, slots=True)
class Source:
    """The source on the command line: a file, a kubeconfig, or the cluster that runs in the directory."""

    file: str
    kubeconfig: Path | None
    context: str | None
    directory: Path

    def clusters(self) -> Iterator[ClusterFile]:
        """Yield the clusters of the source.

        Raises:
            DecodeError: the file has something else.
            click.ClickException: the source cannot be read.
        """
        # 470 ms that --help and completion would pay.
        from nominee.explain.files import ClusterFile, read_clusters

        if self.file:
            yield from read_clusters(_read(self.file), lines=self.file.endswith(".jsonl"))
        elif self.kubeconfig is not None:
            yield _read_kubeconfig(self.kubeconfig, self.context)
        else:
            yield ClusterFile("", _read_directory(self.directory))


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"-f {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.ClickException(f"{file}: not text in UTF-8") from None


def _read_kubeconfig(kubeconfig: Path, context: str | None) -> ClusterFile:
    """Return a real cluster, at its version if Nominee has that one."""
    # 470 ms that --help and completion would pay.
    from nominee.explain.cluster import KINDS
    from nominee.explain.files import ClusterFile
    from nominee.machinery.features.gates import NEWEST, OLDEST

    state = read_live_state(kubeconfig, context, KINDS)
    for kind in _NEEDED:
        if kind in state.problems or "v1" in state.problems:
            raise click.ClickException(f"{kubeconfig}: without the list of {kind}s no pod can be explained")
    known = state.version is not None and OLDEST <= state.version <= NEWEST
    if state.version is not None and not known:
        click.echo(f"warning: the cluster's version, {state.version}, cannot be emulated", err=True)
    return ClusterFile("", state.documents, version=state.version if known else None)


def _read_directory(directory: Path) -> list[Manifest]:
    # 470 ms that --help and completion would pay.
    from nominee.explain.cluster import KINDS
    from nominee.machinery.api.errors import StatusError
    from nominee.machinery.wire.codec import to_json
    from nominee.session import converse

    found: list[Manifest] = []

    async def read(client: Client) -> None:
        for kind in KINDS:
            try:
                found.extend(map(to_json, (await client.list(kind)).items))
            except StatusError as error:
                if error.code not in _NOT_SERVED:
                    raise

    converse(directory, read)
    return found
