"""The check of profiles and extenders before a scheduler runs, with `--check-options`."""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

import pytest

from nominee.machinery.features.gates import DEFAULT, Gates
from nominee.machinery.process.component import BadConfiguration, Process
from nominee.machinery.runtime.clock import SystemClock
from nominee.machinery.wire.values.scalars import Json
from nominee.scheduler.configuration.config import read
from nominee.scheduler.configuration.profiles import build_profile
from nominee.scheduler.framework.interface import Handle, PreEnqueuePlugin, Status
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins import registry
from nominee.scheduler.shell.process.wiring import check_profiles
from nominee.testing.up_words import configuration


class Own(PreEnqueuePlugin):
    """Fails as its argument says when it is made."""

    name = "Own"

    def __init__(self, args: Mapping[str, Json], handle: Handle) -> None:
        match args.get("how"):
            case "value":
                raise ValueError("how: unknown")
            case "key":
                _ = args["missing"]
            case "service":
                _ = handle.client

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        return None


def check(how: str, **more: Json) -> None:
    """Check a profile with the plugin."""
    document = {**configuration(["Own"]), **more}
    document["profiles"][0]["pluginConfig"] = [{"name": "Own", "args": {"how": how}}]
    config, classes = read(document), {**registry.IN_TREE, "Own": Own}
    profiles = [build_profile(each, classes, registry.DEFAULT_PLUGINS) for each in config.profiles]
    gates = Gates("scheduler", DEFAULT, {})
    process = SimpleNamespace(gates=gates, version=DEFAULT, clock=SystemClock(), rng=random.Random(0))
    check_profiles(cast("Process", process), config, classes, profiles, None)


def test_a_plugin_that_cannot_be_made() -> None:
    with pytest.raises(
        BadConfiguration, match="profile default-scheduler: a plugin cannot be made: how: unk"
    ):
        check("value")
    with pytest.raises(BadConfiguration, match="a plugin cannot be made: KeyError: 'missing'"):
        check("key")


def test_a_service_that_only_a_running_scheduler_has_is_no_mistake() -> None:
    check("service")
    check("")


def test_an_extender_without_a_server() -> None:
    with pytest.raises(BadConfiguration, match="urlPrefix: must be an http or https URL"):
        check("", extenders=[{"urlPrefix": "ftp://127.0.0.1", "filterVerb": "filter"}])
