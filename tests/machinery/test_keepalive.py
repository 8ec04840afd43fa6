"""An idle watch stays open: the server bears the pings that its clients send."""

from __future__ import annotations

from pathlib import Path

from grpc._cython import cygrpc  # type: ignore[attr-defined]  # not in its stubs

from nominee.machinery.client.grpc_options import CHANNEL_OPTIONS, KEEPALIVE_MILLISECONDS, SERVER_OPTIONS


def test_every_option_is_one_that_grpc_knows() -> None:
    """A name that it does not know is ignored without a word.

    Misspelled, the server's interval was five minutes instead of some seconds, and it hung up on every watch
    on which nothing had happened for three pings (45 s).
    """
    library = Path(cygrpc.__file__).read_bytes()
    unknown = [name for name, _ in (*CHANNEL_OPTIONS, *SERVER_OPTIONS) if name.encode() not in library]
    assert unknown == []


def test_the_server_expects_pings_as_often_as_clients_send_them() -> None:
    sent = dict(CHANNEL_OPTIONS)["grpc.keepalive_time_ms"]
    borne = dict(SERVER_OPTIONS)["grpc.http2.min_ping_interval_without_data_ms"]
    assert sent == KEEPALIVE_MILLISECONDS
    assert int(borne) < int(sent)
