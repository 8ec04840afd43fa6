"""The port of a dashboard."""

from __future__ import annotations

from contextlib import closing

from nominee.dashboard import serving
from nominee.dashboard.guard import Secrets


def test_a_dashboard_that_is_started_again_has_its_port_if_that_is_free() -> None:
    known = Secrets("a token of this test")
    with closing(serving._listen_again(known)) as first:
        first.listen()
        port = first.getsockname()[1]
        with closing(serving._listen_again(known)) as other:
            assert other.getsockname()[1] != port
    with closing(serving._listen_again(known)) as again:
        assert again.getsockname()[1] == port == known.port
