"""The options of `nominee scenario run` that change its scenarios."""

from __future__ import annotations

import pytest

from nominee.lab.scenario.clusters.run_options import RunOptions
from nominee.lab.scenario.steps.faults.failpoint import ArmFailpoint
from nominee.localcluster.up_options.options import OptionError


def test_options_are_read_and_written_again() -> None:
    options = RunOptions.parse(
        ["scheduler=1.36", "1.37"],
        ["apiserver=ClearingNominatedNodeNameAfterBinding=false"],
        ["scheduler-1=scheduler.bind.before=2*sleep(100)->crash", "kubelet=kubelet.actuate.before=pause"],
    )
    assert options.first == (
        ArmFailpoint(component="scheduler-1", name="scheduler.bind.before", action="2*sleep(100)->crash"),
        ArmFailpoint(component="kubelet", name="kubelet.actuate.before", action="pause"),
    )
    assert options.overrides.emulated_versions == {"scheduler": "1.36", "": "1.37"}
    assert options.words() == [
        *("--emulated-version", "scheduler=1.36", "--emulated-version", "1.37"),
        *("--feature-gates", "apiserver=ClearingNominatedNodeNameAfterBinding=false"),
        *("--failpoints", "scheduler-1=scheduler.bind.before=2*sleep(100)->crash"),
        *("--failpoints", "kubelet=kubelet.actuate.before=pause"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scheduler", "--failpoints: 'scheduler' is not COMPONENT=..., such as scheduler=scheduler.bind.bef"),
        ("scheduler=scheduler.bind.before", "'scheduler.bind.before' is not NAME=ACTION"),
        ("scheduler=scheduler.bind.befor=crash", "did you mean scheduler.bind.before"),
        ("scheduler=scheduler.bind.before=explode", "expected off, crash, error, sleep or pause"),
        ("etcd=etcd.put=crash", "etcd has no failpoints"),
        ("sheduler=x=crash", "unknown component"),
    ],
)
def test_a_failpoint_that_does_not_exist_is_refused(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message.replace(".", r"\.")):
        RunOptions.parse([], [], [text])
