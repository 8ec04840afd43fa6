from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nominee.machinery.features import gates as versions
from nominee.machinery.features.gates import GateError, Gates, UnknownGateError, Version

ALL_VERSIONS = [Version(1, minor) for minor in range(versions.OLDEST.minor, versions.NEWEST.minor + 1)]


def gates_at(text: str, **overrides: bool) -> Gates:
    return Gates("scheduler", Version.parse(text), overrides)


def test_versions_are_ordered_and_printed() -> None:
    assert Version.parse("v1.9") < Version.parse("1.10.3")
    assert str(versions.DEFAULT) == "1.37"
    assert versions.parse_emulated_version("1.38") == versions.NEWEST
    with pytest.raises(ValueError, match='could not parse "1" as version'):
        Version.parse("1")
    with pytest.raises(ValueError, match=r"emulation version 1\.31 is not between \[1\.32, 1\.38\]"):
        versions.parse_emulated_version("1.31")


@pytest.mark.parametrize(
    ("gate", "off_until", "on_since"),
    [
        ("NominatedNodeNameForExpectation", "1.34", "1.35"),
        ("ClearingNominatedNodeNameAfterBinding", "1.34", "1.35"),
        ("InPlacePodVerticalScaling", "1.32", "1.33"),
        ("InPlacePodLevelResourcesVerticalScaling", "1.35", "1.36"),
        ("SchedulerAsyncPreemption", "1.32", "1.33"),
        ("PodLevelResources", "1.33", "1.34"),
        ("DynamicResourceAllocation", "1.33", "1.34"),
        ("NodeDeclaredFeatures", "1.35", "1.36"),
        ("PodObservedGenerationTracking", "1.33", "1.34"),
        ("SchedulerPopFromBackoffQ", "1.32", "1.33"),
    ],
)
def test_defaults_by_version(gate: str, off_until: str, on_since: str) -> None:
    for version in ALL_VERSIONS:
        expected = version >= Version.parse(on_since)
        assert Gates("scheduler", version).enabled(gate) is expected, str(version)
    assert Version.parse(off_until) == Version.parse(on_since).previous


@pytest.mark.parametrize(
    ("version", "overrides", "message"),
    [
        ("1.37", {"Nonsense": True}, "unrecognized feature gate: Nonsense"),
        ("1.32", {"PreferNominatedNode": True}, "unrecognized feature gate: PreferNominatedNode"),
        ("1.37", {"GangScheduling": True}, "unrecognized feature gate: GangScheduling"),
        (
            "1.35",
            {"InPlacePodVerticalScaling": False},
            "cannot set feature gate InPlacePodVerticalScaling to false, feature is locked to true",
        ),
        (
            "1.33",
            {"NominatedNodeNameForExpectation": True},
            "cannot set feature gate NominatedNodeNameForExpectation to true, feature is PreAlpha at "
            "emulated version 1.33, min compatibility version 1.32",
        ),
        (
            "1.36",
            {"GangScheduling": True},
            "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
        (
            "1.36",
            {
                "NodeDeclaredFeatures": False, "PodLevelResources": False,
                "InPlacePodVerticalScalingInitContainers": False,
            },
            "InPlacePodLevelResourcesVerticalScaling is enabled, but depends on features that are disabled: "
            "[PodLevelResources NodeDeclaredFeatures]",
        ),
        (
            "1.36",
            {"WorkloadAwarePreemption": True},
            "WorkloadAwarePreemption is enabled, but depends on features that are disabled: [GangScheduling]",
        ),
        (
            "1.37",
            {"SchedulerPreemptionForPodResize": True, "InPlacePodVerticalScalingSchedulerPreemption": False},
            "cannot set feature gate InPlacePodVerticalScalingSchedulerPreemption to false, feature is set "
            "to true by its other name",
        ),
    ],
)  # fmt: skip
def test_refused(version: str, overrides: dict[str, bool], message: str) -> None:
    with pytest.raises(GateError) as caught:
        gates_at(version, **overrides)
    assert str(caught.value) == message


def test_several_errors_are_reported_together() -> None:
    with pytest.raises(GateError, match=r"^\[cannot set .* locked to true, cannot set .* locked to true\]$"):
        gates_at("1.36", InPlacePodVerticalScaling=False, SchedulerQueueingHints=False)


def test_both_names_are_one_gate() -> None:
    names = ("SchedulerPreemptionForPodResize", "InPlacePodVerticalScalingSchedulerPreemption")
    for name in names:
        gates = gates_at("1.37", **{name: True})
        assert [gates.enabled(each) for each in names] == [True, True]
        assert list(gates.all()).count(names[1]) == 1
        assert names[0] not in gates.all()


def test_a_merged_gate_follows_the_other() -> None:
    assert not gates_at("1.37").enabled("GangScheduling")
    assert gates_at("1.37", GenericWorkload=True).enabled("WorkloadAwarePreemption")
    assert not gates_at("1.36", GenericWorkload=True).enabled("GangScheduling")
    assert "GangScheduling" not in gates_at("1.37").all()


def test_whole_stages_and_exceptions_from_them() -> None:
    gates = gates_at("1.36", AllBeta=False, NominatedNodeNameForExpectation=True)
    assert gates.enabled("NominatedNodeNameForExpectation")
    assert not gates.enabled("SchedulerAsyncPreemption")
    assert gates.enabled("InPlacePodVerticalScaling"), "GA is not beta"
    assert gates_at("1.36", AllAlpha=True).enabled("TaintTolerationComparisonOperators")


def test_setting_a_ga_gate_warns() -> None:
    [warning] = gates_at("1.36", InPlacePodVerticalScaling=True).warnings
    assert warning == (
        "Setting GA feature gate InPlacePodVerticalScaling=true. It will be removed in a future release."
    )
    assert gates_at("1.36", SchedulerAsyncPreemption=False).warnings == ()


def test_asking_for_an_unknown_gate_is_a_mistake() -> None:
    with pytest.raises(UnknownGateError, match="is not registered"):
        gates_at("1.37").enabled("Nonsense")


def test_parsing() -> None:
    assert versions.parse_gates(" A = true,B=0,,C=F") == {"A": True, "B": False, "C": False}
    assert versions.parse_gates("") == {}
    with pytest.raises(GateError, match=r"^missing bool value for A$"):
        versions.parse_gates("A")
    with pytest.raises(GateError) as caught:
        versions.parse_gates("A=yes")
    assert str(caught.value) == (
        'invalid value of A=yes, err: strconv.ParseBool: parsing "yes": invalid syntax'
    )


@pytest.mark.parametrize(
    ("component", "version", "supported"),
    [
        ("scheduler", "1.36", True), ("scheduler", "1.35", False), ("scheduler", "1.38", False),
        ("kubelet", "1.34", True), ("kubelet", "1.33", False), ("kubelet", "1.38", False),
        ("autoscaler", "1.37", True), ("apiserver", "1.32", True),
    ],
)  # fmt: skip
def test_skew(component: str, version: str, supported: bool) -> None:
    problem = versions.skew_problem(component, Version.parse(version), Version(1, 37))
    assert (problem is None) is supported


@given(st.sampled_from(ALL_VERSIONS))
def test_defaults_can_be_said_aloud(version: Version) -> None:
    gates = Gates("kubelet", version)
    again = Gates("kubelet", version, versions.parse_gates(str(gates)))
    assert again.all() == gates.all()


def test_histories_grow_and_needs_exist() -> None:
    for gate in versions.gates().values():
        since = [step.since for step in gate.steps]
        assert since == sorted(set(since)), gate.name
        assert all(need in versions.gates() for need in gate.needs), gate.name
        assert not gate.merged_into or gate.merged_into in versions.gates(), gate.name
