"""The order of the stories, and how they end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio

from machinery.api.errors import StatusError
from machinery.runtime.clock import SystemClock
from nominee.demo.narration import Narrator, StoryError
from nominee.demo.stage import Stage
from nominee.demo.stories import expectation, preemption, resize, resize_preemption, restart

Scene = tuple[str, Callable[[Stage], Awaitable[None]]]

_EXPECTATION: list[Scene] = [
    ("preparation: a node that the autoscaler may not delete", expectation.prepare),
    ("--compat=1.35: the race", lambda stage: expectation.play(stage, "1.35")),
    ("--compat=1.36: nominated pods count as load", lambda stage: expectation.play(stage, "1.36")),
    ("--compat=fixed", lambda stage: expectation.play(stage, "fixed")),
    ("the nodes are deleted", expectation.close),
]
_SCENES: dict[str, tuple[str, list[Scene]]] = {
    "expectation": ("KEP-5278 story 1: the autoscaler sees where a pod will run", _EXPECTATION),
    "restart": (
        "KEP-5278 story 2: a restarted scheduler keeps to its decision",
        [
            ("with the gate", lambda stage: restart.play(stage, gate=True)),
            ("without the gate", lambda stage: restart.play(stage, gate=False)),
            ("while the volume is created", restart.play_while_provisioning),
        ],
    ),
    "preemption": ("Preemption: the right victim, and no other pod overtakes", [("", preemption.play)]),
    "resize": ("In-place resize: in progress, deferred, completed without a restart", [("", resize.play)]),
    "resize-preemption": (
        "KEP-5836 story 3: a deferred resize preempts, and the replacement brings a node",
        [
            ("without a node policy", lambda stage: resize_preemption.play(stage, has_policy=False)),
            ("with the node policy", lambda stage: resize_preemption.play(stage, has_policy=True)),
        ],
    ),
}


def play(directory: Path, stories: Sequence[str]) -> bool:
    """Run the stories on the cluster in a directory; return False at the first check that fails."""
    return anyio.run(_play, directory, stories, backend_options={"use_uvloop": True})


async def _play(directory: Path, stories: Sequence[str]) -> bool:
    clock = SystemClock()
    narrator = Narrator(clock)
    began = clock.monotonic()
    async with Stage.open(directory, clock, narrator) as stage:
        await stage.stop("autoscaler")  # the stories that use it start it
        for story in stories:
            title, scenes = _SCENES[story]
            for name, scene in scenes:
                narrator.heading(f"{title}: {name}" if name else title)
                try:
                    await scene(stage)
                except (StoryError, StatusError) as error:
                    narrator.failed(str(error))
                    return False
    seconds = clock.monotonic() - began
    narrator.plain(f"\n{narrator.checks} checks held in {seconds:.0f} s")
    return True
