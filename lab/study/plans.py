"""Draw the pods of a trial from a seed. No I/O: the random generator is an argument."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from nominee.lab.study.settings import NODE_CPU

RESIZER_PRIORITY = 1000
FILLER_PRIORITY = 2000
VICTIM_PRIORITIES = (10, 20, 30, 40, 50)
_STEP = 250
_ATTEMPTS_MAX = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPod:
    """A pod of a trial; cpu in milli-units, `stop_seconds` is how long its containers take to stop."""

    name: str
    priority: int
    cpu: int
    stop_seconds: float = 0.0
    desired_cpu: int = 0
    """The cpu after its resize; 0 for a pod that is not resized."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One trial on one node: a pod that is resized, pods that may be evicted, fillers that are deleted."""

    seed: int
    name: str
    """The beginning of its pods' names."""
    resizer: PlannedPod
    candidates: tuple[PlannedPod, ...]
    fillers: tuple[PlannedPod, ...]
    changes_while_down: bool
    """Whether a filler is deleted between the scheduler's crash and its start."""
    needed: int
    """How many candidates one undisturbed preemption evicts at most."""

    @property
    def pods(self) -> tuple[PlannedPod, ...]:
        return (self.resizer, *self.candidates, *self.fillers)


def draw(seed: int, prefix: str, stop_seconds: tuple[float, float]) -> Plan:
    """Return the trial of a seed: up to 7 candidates, a resize that needs at least one of them.

    Two fillers of higher priority than the resized pod take 250m to 750m each; their deletion changes how
    much room a preemption still has to make.
    """
    rng = random.Random(seed)
    for _ in range(_ATTEMPTS_MAX):
        plan = _draw_once(rng, seed, prefix, stop_seconds)
        if plan.needed:
            return plan
    raise AssertionError(f"seed {seed}: no plan in {_ATTEMPTS_MAX} attempts")


def _draw_once(rng: random.Random, seed: int, prefix: str, stop_seconds: tuple[float, float]) -> Plan:
    fillers = tuple(
        PlannedPod(
            name=f"{prefix}-filler-{number}", priority=FILLER_PRIORITY, cpu=rng.randrange(_STEP, 751, _STEP)
        )
        for number in range(2)
    )
    present = rng.randrange(500, 1501, _STEP)
    free = NODE_CPU - present - sum(pod.cpu for pod in fillers)
    candidates: list[PlannedPod] = []
    for number in range(rng.randint(4, 7)):
        cpu = rng.randrange(_STEP, 1501, _STEP)
        if cpu > free:
            break
        free -= cpu
        candidates.append(
            PlannedPod(
                name=f"{prefix}-low-{number}",
                priority=rng.choice(VICTIM_PRIORITIES),
                cpu=cpu,
                stop_seconds=round(rng.uniform(*stop_seconds), 1),
            )
        )
    room = sum(pod.cpu for pod in candidates)
    growth = free + rng.randrange(_STEP, max(room * 7 // 10, 2 * _STEP), _STEP)
    resizer = PlannedPod(
        name=f"{prefix}-resizer", priority=RESIZER_PRIORITY, cpu=present, desired_cpu=present + growth
    )
    return Plan(
        seed=seed,
        name=prefix,
        resizer=resizer,
        candidates=tuple(candidates),
        fillers=fillers,
        changes_while_down=rng.random() < 0.5,
        needed=most_victims(growth - free, [(pod.priority, pod.cpu) for pod in candidates]),
    )


def draw_four_pods(seed: int, prefix: str) -> Plan:
    """Return the example of "Risk of Additional Preemption" with X drawn from the seed.

    A filler leaves 2X of the node. Pod 1 goes from X/2 to X; pods 2 to 4 have X/2 and want 2X. One of them
    has to go.
    """
    x = random.Random(seed).randrange(1000, NODE_CPU // 2 + 1, 500)
    half, rest = x // 2, NODE_CPU - 2 * x
    low = tuple(
        PlannedPod(name=f"{prefix}-pod-{number}", priority=10, cpu=half, desired_cpu=2 * x, stop_seconds=0.5)
        for number in (2, 3, 4)
    )
    fillers = (PlannedPod(name=f"{prefix}-filler", priority=FILLER_PRIORITY, cpu=rest),) if rest else ()
    return Plan(
        seed=seed,
        name=prefix,
        resizer=PlannedPod(name=f"{prefix}-resizer", priority=RESIZER_PRIORITY, cpu=half, desired_cpu=x),
        candidates=low,
        fillers=fillers,
        changes_while_down=False,
        needed=most_victims(x - half, [(pod.priority, pod.cpu) for pod in low]),
    )


def needed_victims(missing: int, candidates: Sequence[tuple[int, int]]) -> list[int]:
    """Return the indexes of the candidates to evict so that `missing` cpu becomes free.

    A candidate is (priority, cpu allocated in milli-units). All are taken off the node, then put back in the
    order of their priority as long as the resize still fits. Empty if even all of them are not enough.
    Source: kube-scheduler 1.36, DefaultPreemption's SelectVictimsOnNode, with the kubelet's count.
    """
    spare = sum(cpu for _, cpu in candidates) - missing
    if spare < 0 or missing <= 0:
        return []
    victims = []
    for index, (_, cpu) in sorted(enumerate(candidates), key=lambda one: -one[1][0]):
        if cpu <= spare:
            spare -= cpu
        else:
            victims.append(index)
    return sorted(victims)


def most_victims(missing: int, candidates: Sequence[tuple[int, int]]) -> int:
    """Return the largest number of victims that one undisturbed preemption may choose.

    Pods of equal priority are put back in the order of their start, which a trial does not determine.
    """
    return max(len(needed_victims(missing, order)) for order in permutations(candidates))
