"""The checkpoint: what is saved is read again, damage is noticed, and kill -9 leaves the old or the new."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nominee.kubelet.checkpoint import Checkpoint, CorruptCheckpointError, EncodedPods, decode, encode
from nominee.kubelet.resources.pod_resources import PodResources
from nominee.kubelet.resources.requirements import Requirements, ResourceList
from nominee.kubelet.runtime import sandbox as runtime
from nominee.kubelet.runtime.sandbox import PodSandbox
from nominee.kubelet.shell.checkpoints.checkpoint_file import CheckpointFile
from nominee.machinery.api.pb import core
from tests.support.patience import PATIENCE_SECONDS

SMALL = Requirements(ResourceList.of({"cpu": "100m", "memory": "64Mi"}), ResourceList.of({"cpu": "1"}))
LARGE = Requirements(ResourceList.of({"cpu": "2", "memory": "1Gi"}))


def sandbox(uid: str) -> PodSandbox:
    pod = core.Pod()
    pod.metadata.uid = uid
    pod.spec.initContainers.add(name="setup")
    pod.spec.initContainers.add(name="side", restartPolicy="Always")
    pod.spec.containers.add(name="main")
    resources = PodResources((("setup", SMALL), ("side", SMALL), ("main", LARGE)))
    started = runtime.start(runtime.prepare(pod, now=10.25), resources, ip="10.0.0.7", now=11.5)
    return runtime.restart(runtime.become_ready(started), ("main",), resources, now=20.0)


def checkpoint(pods: int = 2) -> Checkpoint:
    uids = [f"uid-{number}" for number in range(pods)]
    return Checkpoint(
        node="node-0",
        allocations={uid: PodResources((("z", LARGE), ("a", SMALL)), pod=LARGE) for uid in uids},
        sandboxes={uid: sandbox(uid) for uid in uids},
    )


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    file = CheckpointFile(tmp_path, "node-0")
    assert file.load() is None
    file.save(checkpoint())
    assert file.load() == checkpoint()
    assert [path.name for path in tmp_path.iterdir()] == ["node-0.json"]


def test_the_same_state_gives_the_same_bytes() -> None:
    assert encode(checkpoint()) == encode(checkpoint())


def test_pods_that_were_encoded_before_are_encoded_as_if_they_were_not() -> None:
    encoded = EncodedPods()
    first = checkpoint(3)
    encode(first, encoded)
    sandboxes = {uid: each for uid, each in first.sandboxes.items() if uid != "uid-0"}
    sandboxes["uid-1"] = replace(sandboxes["uid-1"], ip="10.0.0.8")
    sandboxes["another"] = sandbox("another")
    second = replace(first, sandboxes=sandboxes)

    data = encode(second, encoded)

    assert data == encode(second)
    assert decode(data) == second
    assert set(encoded.sandboxes) == {"another", "uid-1", "uid-2"}


WHOLE = encode(checkpoint(1))


@given(st.integers(0, len(WHOLE) - 2))
def test_a_torn_file_is_refused(length: int) -> None:
    with pytest.raises(CorruptCheckpointError):
        decode(WHOLE[:length])


@given(st.integers(0, len(WHOLE) - 2), st.integers(0, 255))
def test_a_changed_byte_is_noticed_or_means_nothing(position: int, byte: int) -> None:
    damaged = WHOLE[:position] + bytes([byte]) + WHOLE[position + 1 :]
    try:
        decoded = decode(damaged)
    except CorruptCheckpointError:
        return
    assert decoded == checkpoint(1)


def test_a_corrupt_file_is_named(tmp_path: Path) -> None:
    file = CheckpointFile(tmp_path, "node-0")
    file.path.write_text('{"checksum":"sha256:0","data":{}}')
    with pytest.raises(CorruptCheckpointError, match=r"node-0\.json: checksum does not match"):
        file.load()
    file.remove()
    assert file.load() is None


def test_another_nodes_file_is_refused(tmp_path: Path) -> None:
    CheckpointFile(tmp_path, "node-1").save(replace(checkpoint(), node="node-0"))
    with pytest.raises(CorruptCheckpointError, match="is of node node-0"):
        CheckpointFile(tmp_path, "node-1").load()


def test_a_half_written_new_file_does_not_matter(tmp_path: Path) -> None:
    file = CheckpointFile(tmp_path, "node-0")
    file.save(checkpoint())
    file.path.with_suffix(".new").write_bytes(WHOLE[:40])
    assert file.load() == checkpoint()
    file.save(checkpoint(3))
    assert file.load() == checkpoint(3)


WRITER = """
import sys
from pathlib import Path
from nominee.kubelet.shell.checkpoints.checkpoint_file import CheckpointFile
from tests.kubelet.test_checkpoint import checkpoint

file = CheckpointFile(Path(sys.argv[1]), "node-0")
for number in range(100_000):
    file.save(checkpoint(1 + number % 40))
    if number == 3:
        print("going", flush=True)
"""


@pytest.mark.parametrize("attempt", range(3))
def test_kill_9_in_the_middle_of_saves(tmp_path: Path, attempt: int) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert writer.stdout is not None
    with writer.stdout:
        assert writer.stdout.readline() == b"going\n"
        saved = CheckpointFile(tmp_path, "node-0").path.stat().st_mtime_ns
        # Some more saves must have begun, so that the signal comes between any two steps of one.
        while CheckpointFile(tmp_path, "node-0").path.stat().st_mtime_ns == saved:
            pass
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait(timeout=PATIENCE_SECONDS)
    found = CheckpointFile(tmp_path, "node-0").load()
    assert found is not None
    assert found == checkpoint(len(found.allocations))
