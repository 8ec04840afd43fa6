"""Registrations of the plugins that we have, as the queue gets them from a profile."""

from __future__ import annotations

import random
from functools import cache

from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.runtime.clock import FakeClock
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.nominations.nominator import Nominator
from nominee.scheduler.framework.runtime.environment import Environment
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.plugins import registry
from nominee.scheduler.queue.hints import Registration, build_hint_map


@cache
def own_registrations() -> dict[str, list[Registration]]:
    """By plugin, at the version of the recordings."""
    version = Version(1, 36)
    environment = Environment(
        snapshot=Snapshot(),
        nominator=Nominator(),
        gates=Gates("scheduler", version),
        version=version,
        clock=FakeClock(),
        rng=random.Random(0),
    )
    framework = Framework(registry.default_profile(), registry.IN_TREE, environment)
    registered = framework.events_to_register()
    found: dict[str, list[Registration]] = {name: [] for name in registered}
    for registration in build_hint_map(registered).registrations:
        found[registration.plugin].append(registration)
    return found
