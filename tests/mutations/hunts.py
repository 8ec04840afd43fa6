"""Where each mutation is looked for, and within what budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_OWN = Path(__file__).parent / "scenarios"
_PRODUCT = Path(__file__).parents[2] / "scenarios"
PLAIN = "nothing"
"""A pattern that no case matches: the undisturbed run alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunt:
    """One exploration: a scenario, the single cases (patterns), and the most runs that it may take.

    The undisturbed run counts as a run. `hits`, `pairs` and `seed` are options of `nominee chaos explore`.
    """

    file: Path
    name: str
    only: tuple[str, ...] = (PLAIN,)
    hits: int = 2
    pairs: bool = False
    runs_max: int = 1
    seed: int = 1

    def scenario(self, folder: Path, python: str) -> Path:
        """Return the scenario's file; a copy with the interpreter's path if it starts a program."""
        text = self.file.read_text(encoding="utf-8")
        if "PYTHON" not in text:
            return self.file
        copy = folder / self.file.name
        copy.write_text(text.replace("PYTHON", python), encoding="utf-8")
        return copy


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunts:
    """The hunts for one mutation: in a simulation, and on real processes."""

    simulated: Hunt
    real: Hunt
    seconds_max: float = 240.0
    """On real processes, with the start of the clusters; simulated, 60 s are the limit."""


SIMULATED_SECONDS_MAX = 60.0


def _own(name: str, *only: str, hits: int = 2, pairs: bool = False, runs_max: int = 1, seed: int = 1) -> Hunt:
    return Hunt(
        file=_OWN / f"{name}.yaml",
        name=name,
        only=only or (PLAIN,),
        hits=hits,
        pairs=pairs,
        runs_max=runs_max,
        seed=seed,
    )


def _both(hunt: Hunt) -> Hunts:
    return Hunts(simulated=hunt, real=hunt)


HUNTS: Mapping[str, Hunts] = {
    "bind-without-precondition": Hunts(
        simulated=_own(
            "stale-list",
            "apiserver:etcd=stale@3",
            "scheduler:scheduler.bind.after=crash",
            pairs=True,
            runs_max=4,
        ),
        # The other scheduler must bind the pod meanwhile; on a busy machine it is late at the first hit.
        real=_own("two-schedulers", "scheduler:scheduler.bind.before=delay*", hits=3, runs_max=4),
    ),
    "nomination-not-cleared": _both(_own("preemption")),
    "assumed-pod-not-forgotten": Hunts(
        simulated=_own("pods", "scheduler:*=error*", runs_max=13),
        real=_own("pods", "scheduler:scheduler.bind.*=error*", runs_max=3),
    ),
    "checkpoint-after-actuation": Hunts(
        simulated=_own("checkpoint", "kubelet-0:*=crash*", hits=9, runs_max=34),
        real=_own("checkpoint", "kubelet-0:kubelet.checkpoint.before=crash*", hits=9, runs_max=6),
    ),
    "victim-chosen-twice": _both(_own("victims")),
    "watch-resumed-late": _both(_own("watch", "apiserver:apiserver.watch.send=error*", hits=30, runs_max=20)),
    "autoscaler-ignores-nominations": _both(
        Hunt(file=_PRODUCT / "kep-5278-story-1-scale-down.yaml", name="kep-5278-story-1-fixed")
    ),
    "budget-ignored-in-second-pass": _both(_own("preemption")),
    "resize-counted-twice": _both(_own("resize")),
    "lease-taken-too-early": _both(_own("lease", "scheduler:scheduler.bind.after=crash", runs_max=2)),
    "cache-updated-after-queue": _both(_own("room")),
    "own-write-check-skips-deletion": _both(_own("slices")),
    # In a network in which the deletion of the old pod meets the new one.
    "pod-removed-by-name": _both(_own("recreated", "kubelet-0:apiserver-1=*", runs_max=9, seed=5)),
}
"""By the name of the mutation."""
