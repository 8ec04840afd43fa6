"""The supervisor's control socket."""

from __future__ import annotations

import selectors
import socket
from pathlib import Path

import pytest

from nominee.localcluster.supervisor.commands.control import Control
from nominee.localcluster.supervisor.commands.socket_path import reachable


def test_the_socket_has_its_name_only_once_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`up --detach` connects as soon as the name is there; between bind and listen it would be refused."""
    path = tmp_path / "supervisor.sock"
    there_before_listen: list[bool] = []
    listen = socket.socket.listen

    def watched(self: socket.socket, backlog: int) -> None:
        there_before_listen.append(path.exists())
        listen(self, backlog)

    monkeypatch.setattr(socket.socket, "listen", watched)
    with selectors.DefaultSelector() as selector:
        control = Control(path, selector, lambda _request: {"ok": True})
        with socket.socket(socket.AF_UNIX) as client, reachable(path) as short:
            client.connect(short)
        control.close()
    assert there_before_listen == [False]
    assert not list(tmp_path.iterdir())
