"""The settings that invariants read are those of all processes of a component."""

from __future__ import annotations

import pytest

from nominee.lab.history.verification.settings import Configured, of_arguments, settings_from

GATE = "--feature-gates=WatchListClient=false"


def _configured(component: str, *arguments: str) -> Configured:
    found = of_arguments(component, arguments)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("processes", "components"),
    [
        ([_configured("controllers"), _configured("kubelet")], {"controllers", "kubelet"}),
        ([_configured("controllers", GATE), _configured("kubelet")], {"kubelet"}),
        ([_configured("controllers"), _configured("controllers", GATE)], set()),
        ([_configured("scheduler", "--emulated-version=1.34")], set()),
        ([], set()),
    ],
    ids=["on", "off", "not the same", "an older version", "no process"],
)
def test_components_that_begin_with_the_newest_state(
    processes: list[Configured], components: set[str]
) -> None:
    assert settings_from(processes).lists_newest == components
