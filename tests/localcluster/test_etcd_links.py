"""Relays between etcd members: a link is cut in both directions, open connections included."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.abc
import pytest
from click.testing import CliRunner

from nominee.commands.faults.fault import fault
from nominee.localcluster.etcd import links as etcd_links
from nominee.localcluster.etcd import relay as etcd_relay
from nominee.localcluster.etcd.links import LinkError
from tests.support.eventually import eventually
from tests.support.patience import PATIENCE_SECONDS

MEMBERS = ("etcd-0", "etcd-1", "etcd-2")
DEAD = 2**22 + 1
"""No process has this pid."""


async def echo(stream: anyio.abc.SocketStream) -> None:
    """Stand in for a member: answer with what is received."""
    async with stream:
        async for data in stream:
            await stream.send(data)


class Links:
    """Relays of three members; connections of this process are those of `etcd-1`."""

    def __init__(self, directory: Path, tasks: anyio.abc.TaskGroup) -> None:
        self.directory, self._tasks = directory, tasks
        self.ports: dict[str, int] = {}
        self._scopes: dict[str, anyio.CancelScope] = {}

    async def start(self, name: str, target: int) -> None:
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as free:
            port = free.extra(anyio.abc.SocketAttribute.local_port)
        self.ports[name] = port
        scope = self._scopes[name] = anyio.CancelScope()
        self._tasks.start_soon(self._serve, name, scope, target)
        await eventually(partial(self._answers, name))

    async def _serve(self, name: str, scope: anyio.CancelScope, target: int) -> None:
        with scope:
            relay = etcd_relay.Relay(self.directory, name)
            await relay.serve(f"127.0.0.1:{self.ports[name]}", f"127.0.0.1:{target}")

    async def _answers(self, name: str) -> bool:
        try:
            await (await self.connect(name)).aclose()
        except OSError:
            return False
        return True

    def kill(self, name: str) -> None:
        self._scopes[name].cancel()

    async def connect(self, name: str) -> anyio.abc.SocketStream:
        return await anyio.connect_tcp("127.0.0.1", self.ports[name])

    async def put(self, member: str, to: str, action: str) -> None:
        await anyio.to_thread.run_sync(etcd_links.put, self.directory, member, to, action)

    async def cut(self) -> list[tuple[str, str]]:
        return await anyio.to_thread.run_sync(etcd_links.links, self.directory, "etcd")

    async def reaches(self, name: str) -> bool:
        async with await self.connect(name) as stream:
            return await answers(stream)


async def answers(stream: anyio.abc.SocketStream) -> bool:
    """Return whether a connection answers; it ends if not."""
    with anyio.fail_after(PATIENCE_SECONDS):
        try:
            await stream.send(b"x" * 100_000)
            received = 0
            while received < 100_000:
                received += len(await stream.receive())
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return False
    return True


@asynccontextmanager
async def three(directory: Path) -> AsyncIterator[Links]:
    (directory / "run").mkdir()
    for name in MEMBERS:
        pid = os.getpid() if name == "etcd-1" else DEAD
        (directory / "run" / f"{name}.lock").write_text(f"{pid}\n")
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as member,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(member.serve, echo)
        found = Links(directory, tasks)
        for name in MEMBERS:
            await found.start(name, member.extra(anyio.abc.SocketAttribute.local_port))
        yield found
        tasks.cancel_scope.cancel()


async def test_a_link_is_cut_and_healed(tmp_path: Path) -> None:
    async with three(tmp_path) as links:
        async with await links.connect("etcd-0") as before:
            assert await answers(before)
            await links.put("etcd-0", "etcd-1", "cut")
            assert not await answers(before)
        assert not await links.reaches("etcd-0")
        assert await links.reaches("etcd-2")
        assert await links.cut() == [("etcd-0", "etcd-1"), ("etcd-1", "etcd-0")]
        await links.put("etcd-1", "*", "off")
        assert await links.reaches("etcd-0")
        assert await links.cut() == []


async def test_a_member_that_starts_again_stays_cut_off(tmp_path: Path) -> None:
    async with three(tmp_path) as links:
        await links.put("etcd-0", "*", "cut")
        links.kill("etcd-0")
        await anyio.wait_all_tasks_blocked()
        assert await links.cut() == [("etcd-1", "etcd-0"), ("etcd-2", "etcd-0")]
        await links.start("etcd-0", 1)
        assert ("etcd-0", "etcd-1") in await links.cut()
        assert ("etcd-0", "etcd-2") in await links.cut()


async def test_what_is_not_possible(tmp_path: Path) -> None:
    with pytest.raises(LinkError, match="set the fault at the API server, --to etcd"):
        etcd_links.put(tmp_path, "etcd-0", "*", "cut")
    async with three(tmp_path) as links:
        for member, to, action, message in (
            ("etcd-7", "*", "cut", "there is no etcd member etcd-7; there are etcd-0, etcd-1, etcd-2"),
            ("etcd-0", "etcd-0", "cut", "etcd-0 has no link to etcd-0; it has links to etcd-1, etcd-2"),
            ("etcd-0", "*", "delay(5)", "is not possible for links between etcd members"),
            ("etcd-leader", "*", "cut", "no etcd member leads at the moment"),
        ):
            with pytest.raises(LinkError, match=message.replace("(", r"\(")):
                await links.put(member, to, action)


async def test_members_that_do_not_run(tmp_path: Path) -> None:
    async with three(tmp_path) as links:
        links.kill("etcd-0")
        await anyio.wait_all_tasks_blocked()
        await links.put("etcd-0", "etcd-1", "cut")
        assert await links.cut() == [("etcd-1", "etcd-0")]
        links.kill("etcd-2")
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(LinkError, match="neither etcd-0 nor etcd-2 runs with a relay"):
            await links.put("etcd-0", "etcd-2", "cut")


async def test_the_states_of_links(tmp_path: Path) -> None:
    async with three(tmp_path) as links:

        async def states() -> dict[str, bool]:
            found = await anyio.to_thread.run_sync(etcd_links.states, tmp_path)
            return {" ".join(sorted(link)): cut for link, cut in found.items()}

        assert await states() == {"etcd-0 etcd-1": False, "etcd-0 etcd-2": False, "etcd-1 etcd-2": False}
        await links.put("etcd-0", "etcd-1", "cut")
        links.kill("etcd-0")
        await anyio.wait_all_tasks_blocked()
        assert await states() == {"etcd-0 etcd-1": True, "etcd-0 etcd-2": False, "etcd-1 etcd-2": False}
        links.kill("etcd-1")
        await anyio.wait_all_tasks_blocked()
        assert await states() == {"etcd-0 etcd-2": False, "etcd-1 etcd-2": False}


async def test_links_that_are_cut_while_members_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, asked = etcd_links._ask, []

    def ask_and_cut(directory: Path, name: str, **command: list[str]) -> frozenset[str] | None:
        answer = ask(directory, name, **command)
        asked.append(name)
        if asked == ["etcd-0", "etcd-1"]:
            etcd_links.put(directory, "etcd-1", "*", "cut")
        return answer

    async with three(tmp_path):
        monkeypatch.setattr(etcd_links, "_ask", ask_and_cut)
        found = await anyio.to_thread.run_sync(etcd_links.states, tmp_path)
    assert {link for link, cut in found.items() if cut} == {
        frozenset(("etcd-0", "etcd-1")),
        frozenset(("etcd-1", "etcd-2")),
    }


async def test_the_command(tmp_path: Path) -> None:
    async with three(tmp_path):

        async def run(*words: str) -> str:
            ran = await anyio.to_thread.run_sync(
                lambda: CliRunner().invoke(fault, [*words, "--dir", str(tmp_path)])
            )
            return ran.output

        assert await run("etcd-0", "cut", "--to", "etcd-2") == "etcd-0: to etcd-2: cut\n"
        rows = [line.split()[:2] for line in (await run("etcd")).splitlines()[1:]]
        assert rows == [["etcd-0", "etcd-2"], ["etcd-2", "etcd-0"]]
        assert await run("etcd-leader", "off") == "etcd-leader: all links: off\n"
        assert len((await run("etcd")).splitlines()) == 1
        assert "no --method, no --kind" in await run("etcd-0", "cut", "--method", "Txn")
