"""One command's conversation with the API server: connect, do it, turn its errors into the person's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO, Any

import click

from machinery import client as client_module
from machinery import kinds
from machinery.client import Client
from machinery.errors import StatusError
from machinery.kinds import Kind
from nominee.plan import directory_hint
from nominee.supervisor.directory import StateDirectory

_CONNECT_SECONDS_MAX = 5.0


def converse(directory: Path, work: Callable[[Client], Awaitable[int | None]]) -> None:
    """Runs `work` with a client; a status error becomes `Error from server (Reason): message`, exit code 1.

    What `work` returns is the exit code, None for 0.
    """
    import anyio

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
    except TimeoutError as error:
        raise click.ClickException(str(error)) from None
    if code:
        raise SystemExit(code)


def _must_run(directory: Path) -> None:
    if "apiserver" not in StateDirectory(directory).live_run_files():
        hint = directory_hint(directory)
        raise click.ClickException(
            f"no API server runs in {directory}; "
            f"see `nominee status{hint}`, start one with `nominee up{hint}`"
        )


class _ServerError(click.ClickException):
    """What the server answered, as kubectl shows it: without our own "Error: " before it."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(self.message, file=file, err=file is None)


def server_error(error: StatusError) -> str:
    """The error as kubectl words it."""
    reason = f" ({error.reason})" if error.reason else ""
    return f"Error from server{reason}: {error.message}"


def find_kind(name: str) -> Kind[Any]:
    """The kind that a person means by `po`, `pods`, `Pod`, `poddisruptionbudgets.policy`."""
    found = next(kinds.by_name(name), None)
    if found is None:
        known = ", ".join(dict.fromkeys(kind.plural for kind in kinds.KINDS))
        raise click.UsageError(f'the server doesn\'t have a resource type "{name}"; it has {known}')
    return found
