"""Options of gRPC channels and servers: message sizes, keep-alive, and the limits of connections."""

from __future__ import annotations

METADATA_BYTES_MAX = 1 << 20
KEEPALIVE_MILLISECONDS = 15_000
"""After this much silence the server is asked whether it lives, and given half as long to answer."""

CHANNEL_OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_metadata_size", METADATA_BYTES_MAX),
    ("grpc.absolute_max_metadata_size", METADATA_BYTES_MAX),
    ("grpc.keepalive_time_ms", KEEPALIVE_MILLISECONDS),
    ("grpc.keepalive_timeout_ms", KEEPALIVE_MILLISECONDS // 2),
    ("grpc.keepalive_permit_without_calls", 0),
    ("grpc.http2.max_pings_without_data", 0),
    # A server that was restarted on the same port is back within half a second, not after a minute.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    # In spite of its name how long a connection may take to be made.
    ("grpc.min_reconnect_backoff_ms", 5000),
    # Each client has its own connection, also two in one process: one dies, one is closed.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
)
CONNECTION_OPTIONS: tuple[tuple[str, int | str], ...] = (
    # For TLS and HTTP/2's first frame; two minutes by default, and 20 KB each.
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_allowed_incoming_connections", 2_000),
)
"""Of a server: what connections that do not begin may cost."""
SERVER_OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_metadata_size", METADATA_BYTES_MAX),
    ("grpc.absolute_max_metadata_size", METADATA_BYTES_MAX),
    # Pings as often as clients send them; otherwise the server answers with too_many_pings and hangs up.
    ("grpc.http2.min_ping_interval_without_data_ms", KEEPALIVE_MILLISECONDS // 2),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.so_reuseport", 0),
    *CONNECTION_OPTIONS,
)
"""For the server at the other end of this client."""
