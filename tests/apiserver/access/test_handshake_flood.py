"""Thousands of connections that never finish the TLS handshake: limited in number, time and memory."""

from __future__ import annotations

import resource
import socket
import ssl
from contextlib import ExitStack
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from nominee.apiserver.fronts.open_files import GRPC_MAX
from nominee.machinery.api import kinds
from nominee.machinery.process.http.accepting import PENDING_MAX
from tests.apiserver.access.test_secure_cluster import pod
from tests.support.cluster import Cluster, pss_kib
from tests.support.eventually import eventually

CONNECTIONS = 3000
HELLO_BEGUN = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
"""The first bytes of TLS's ClientHello."""
KEPT_KIB_MAX = 40 << 10
"""Without limits 3,000 connections kept 150 MiB, in either front."""
OPEN_FILES_NEEDED = CONNECTIONS + 500


def files_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


@pytest.fixture(autouse=True)
def _many_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < OPEN_FILES_NEEDED:
        pytest.skip(f"a process here may open {hard} files, and this test opens {OPEN_FILES_NEEDED}")
    if soft != resource.RLIM_INFINITY and soft < OPEN_FILES_NEEDED:
        resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES_NEEDED, hard))


@pytest.mark.chaos
@pytest.mark.parametrize("front", ["grpc", "rest"])
@pytest.mark.parametrize("first", [b"", HELLO_BEGUN], ids=["silent", "hello"])
async def test_a_flood_of_unfinished_handshakes(cluster: Cluster, front: str, first: bytes) -> None:
    cluster.secure()
    await cluster.start("etcd", "apiserver")
    pid = cluster.processes["apiserver"].pid
    found = cluster.run_file("apiserver")
    host, _, port = (found.grpc if front == "grpc" else str(found.document["rest"])).rpartition(":")
    async with cluster.client() as client:
        await client.create(pod("before"))
        memory, files = pss_kib([pid]), files_of(pid)
        with ExitStack() as stack:
            for _ in range(CONNECTIONS):
                stack.enter_context(socket.create_connection((host, int(port)))).sendall(first)
            limit = GRPC_MAX if front == "grpc" else PENDING_MAX
            assert files_of(pid) <= files + limit + 40
            # A client that is connected is served, and over REST a new one too.
            await client.create(pod("during"))
            if front == "rest":
                with anyio.fail_after(10):
                    await anyio.to_thread.run_sync(_handshake, host, int(port))
            # The server drops them, although their clients stay.
            await eventually(lambda: files_of(pid) <= files + 5, explain=lambda: files_of(pid))
        await eventually(
            lambda: pss_kib([pid]) <= memory + KEPT_KIB_MAX,
            explain=lambda: f"{memory} KiB before, {pss_kib([pid])} after",
        )
        async with cluster.client() as another:
            names = [each.metadata.name for each in (await another.list(kinds.POD)).items]
            assert names == ["before", "during"]


def _handshake(host: str, port: int) -> None:
    """Finish a handshake as any client does; the certificate does not matter here."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((host, port), timeout=10) as plain, context.wrap_socket(plain) as secure:
        assert secure.version() is not None
