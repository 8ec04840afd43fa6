"""The parts of a server do not know the server that asks for them."""

from __future__ import annotations

from nominee.apiserver.process import server, wiring


def test_the_parts_and_the_server_do_not_call_each_other() -> None:
    assert not hasattr(wiring, "ApiServer")
    assert not hasattr(server, "Wiring")
