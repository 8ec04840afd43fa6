"""A command's requests to the API server: connect, send, turn errors into messages and exit codes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import IO, Any, TypeVar

import anyio
import click

from nominee.localcluster.plan import directory_hint
from nominee.localcluster.supervisor.directory import StateDirectory
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import Kind
from nominee.machinery.client import api_client as client_module
from nominee.machinery.client.api_client import Client
from nominee.machinery.client.credentials import NoCredential

_CONNECT_SECONDS_MAX = 5.0
SERVICE_UNAVAILABLE = 503
T = TypeVar("T")


def converse(directory: Path, work: Callable[[Client], Awaitable[int | None]]) -> None:
    """Run `work` with a client; a status error becomes `Error from server (Reason): message`, exit code 1.

    The result of `work` is the exit code; None is 0.
    """
    _must_run(directory)

    async def session() -> int | None:
        async with await client_module.connect(
            directory, user_agent="nominee", limit_seconds=_CONNECT_SECONDS_MAX
        ) as client:
            return await work(client)

    try:
        code = anyio.run(session)
    except StatusError as error:
        raise _ServerError(server_error(error)) from None
    except (TimeoutError, NoCredential) as error:
        raise click.ClickException(str(error)) from None
    if code:
        raise SystemExit(code)


async def each(items: Iterable[T], act: Callable[[T], Awaitable[None]]) -> None:
    """Act on one item after another, as kubectl does: an error of the server does not stop the others.

    Raises:
        StatusError: the last error, after earlier ones are printed; the first one if no server answers.
    """
    refused: list[StatusError] = []
    for item in items:
        try:
            await act(item)
        except StatusError as error:
            if error.code == SERVICE_UNAVAILABLE:
                raise
            refused.append(error)
    for earlier in refused[:-1]:
        click.echo(server_error(earlier), err=True)
    if refused:
        raise refused[-1]


def _must_run(directory: Path) -> None:
    running = StateDirectory(directory).live_run_files().values()
    if not any(document.get("component") == "apiserver" for document in running):
        hint = directory_hint(directory)
        raise click.ClickException(
            f"no API server runs in {directory}; "
            f"see `nominee status{hint}`, start one with `nominee up{hint}`"
        )


class _ServerError(click.ClickException):
    """The server's answer as kubectl shows it: without "Error: " before it."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(self.message, file=file, err=file is None)


def server_error(error: StatusError) -> str:
    """Return the error in kubectl's words."""
    reason = f" ({error.reason})" if error.reason else ""
    return f"Error from server{reason}: {error.message}"


def find_kind(name: str) -> Kind[Any]:
    """Return the kind for `po`, `pods`, `Pod` or `poddisruptionbudgets.policy`."""
    found = next(kinds.by_name(name), None)
    if found is None:
        known = ", ".join(dict.fromkeys(kind.plural for kind in kinds.KINDS))
        raise click.UsageError(f'the server doesn\'t have a resource type "{name}"; it has {known}')
    return found
