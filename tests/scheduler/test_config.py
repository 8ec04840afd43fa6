"""KubeSchedulerConfiguration is read, defaulted, merged and rejected as upstream does."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nominee.scheduler import plugin_loader
from nominee.scheduler.configuration import config
from nominee.scheduler.configuration.config import ConfigError, SchedulerConfig
from nominee.scheduler.configuration.profiles import ProfileError, build_profile
from nominee.scheduler.framework.interface import PermitPlugin, Plugin
from nominee.scheduler.framework.runtime.profile import ExtensionPoint, Profile
from nominee.scheduler.plugins import registry
from tests.scheduler.builders import Scripted

HEADER = {"apiVersion": config.API_VERSION, "kind": config.KIND}
CLASSES: dict[str, type[Plugin]] = {**registry.IN_TREE, "Scripted": Scripted}
DEFAULT_SCORES = [e.name for e in registry.default_profile().points[ExtensionPoint.SCORE]]


def read(**fields: Any) -> SchedulerConfig:
    return config.read({**HEADER, **fields})


def built(*profiles: dict[str, Any]) -> list[Profile]:
    return [
        build_profile(p, CLASSES, registry.DEFAULT_PLUGINS) for p in read(profiles=list(profiles)).profiles
    ]


def names(profile: Profile, point: ExtensionPoint) -> list[str]:
    return [enabled.name for enabled in profile.points[point]]


def test_defaults() -> None:
    found = read()
    assert found == SchedulerConfig()
    assert (found.pod_initial_backoff_seconds, found.pod_max_backoff_seconds) == (1, 10)
    assert found.percentage_of_nodes_to_score is None
    assert not found.leader_election.leader_elect
    [profile] = found.profiles
    assert (
        build_profile(profile, CLASSES, registry.DEFAULT_PLUGINS).points == registry.default_profile().points
    )


def test_a_typical_file() -> None:
    found = config.load(
        """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  leaseDuration: 4s
  renewDeadline: 3s
  retryPeriod: 500ms
clientConnection:
  kubeconfig: /nowhere
percentageOfNodesToScore: 30
podMaxBackoffSeconds: 20
profiles:
- schedulerName: default-scheduler
  plugins:
    score:
      disabled:
      - name: "*"
      enabled:
      - name: NodeResourcesFit
        weight: 7
  pluginConfig:
  - name: NodeResourcesFit
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeResourcesFitArgs
      scoringStrategy: {type: MostAllocated}
- schedulerName: second
extenders:
- urlPrefix: http://127.0.0.1:9/
  prioritizeVerb: prioritize
  weight: 2
  managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]
"""
    )
    assert found.leader_election.retry_seconds == 0.5
    assert found.percentage_of_nodes_to_score == 30
    assert found.pod_max_backoff_seconds == 20
    first, second = (build_profile(p, CLASSES, registry.DEFAULT_PLUGINS) for p in found.profiles)
    assert [(e.name, e.weight) for e in first.points[ExtensionPoint.SCORE]] == [("NodeResourcesFit", 7)]
    assert first.args["NodeResourcesFit"] == {"scoringStrategy": {"type": "MostAllocated"}}
    assert names(second, ExtensionPoint.SCORE) == DEFAULT_SCORES
    assert found.extenders[0].managed_resources == ("example.com/gpu",)


@dataclass(frozen=True)
class Merged:
    name: str
    plugins: dict[str, Any]
    point: ExtensionPoint
    want: list[str]


@pytest.mark.parametrize(
    "case",
    [
        Merged(
            "disabled everywhere by MultiPoint",
            {"multiPoint": {"disabled": [{"name": "TaintToleration"}]}},
            ExtensionPoint.FILTER,
            [e.name for e in registry.default_profile().points[ExtensionPoint.FILTER]
             if e.name != "TaintToleration"],
        ),
        Merged(
            "a new plugin of MultiPoint comes last",
            {"multiPoint": {"enabled": [{"name": "Scripted"}]}},
            ExtensionPoint.BIND,
            ["DefaultBinder", "Scripted"],
        ),
        Merged(
            "MultiPoint reorders what it names again after disabling it",
            {"multiPoint": {"disabled": [{"name": "*"}],
                            "enabled": [{"name": n} for n in ("PrioritySort", "Scripted", "DefaultBinder")]}},
            ExtensionPoint.BIND,
            ["Scripted", "DefaultBinder"],
        ),
        Merged(
            "an extension point's own order comes before MultiPoint's",
            {"score": {"enabled": [{"name": "ImageLocality", "weight": 5}]}},
            ExtensionPoint.SCORE,
            ["ImageLocality", *(name for name in DEFAULT_SCORES if name != "ImageLocality")],
        ),
        Merged(
            "disabled at one extension point only",
            {"preScore": {"disabled": [{"name": "TaintToleration"}]}},
            ExtensionPoint.SCORE,
            DEFAULT_SCORES,
        ),
    ],
    ids=lambda case: case.name,
)  # fmt: skip
def test_merging(case: Merged) -> None:
    [profile] = built({"plugins": case.plugins})
    assert names(profile, case.point) == case.want


@dataclass(frozen=True)
class Wrong:
    fields: dict[str, Any]
    want: str


@pytest.mark.parametrize(
    "case",
    [
        Wrong(
            {"parallelism": 0}, "parallelism: Invalid value: 0: should be an integer value greater than zero"
        ),
        Wrong({"parallelism": "4"}, "parallelism: expected an integer, got string"),
        Wrong(
            {"percentageOfNodesToScore": 101},
            "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        ),
        Wrong(
            {"podInitialBackoffSeconds": 0},
            "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
        ),
        Wrong(
            {"podInitialBackoffSeconds": 5, "podMaxBackoffSeconds": 4},
            "podMaxBackoffSeconds: Invalid value: 4: must be greater than or equal to PodInitialBackoff",
        ),
        Wrong({"profils": []}, 'strict decoding error: unknown field "profils"'),
        Wrong(
            {"profiles": [{"schedulerName": "a", "plugins": {"score": {"enable": []}}}]},
            'strict decoding error: unknown field "profiles[0].plugins.score.enable"',
        ),
        Wrong(
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
            'profiles[1].schedulerName: Duplicate value: "a"',
        ),
        Wrong({"profiles": [{"schedulerName": "a"}, {}]}, "profiles[1].schedulerName: Required value"),
        Wrong(
            {
                "profiles": [
                    {"schedulerName": "a"},
                    {"schedulerName": "b", "plugins": {"queueSort": {"enabled": [{"name": "X"}]}}},
                ]
            },
            'profiles[1].plugins.queueSort: Invalid value: ["X"]: has to match for all profiles',
        ),
        Wrong(
            {"profiles": [{"pluginConfig": [{"name": "X", "args": {}}, {"name": "X", "args": {}}]}]},
            'profiles[0].pluginConfig[1]: Duplicate value: "X"',
        ),
        Wrong(
            {"leaderElection": {"leaderElect": True, "leaseDuration": "2s", "renewDeadline": "3s"}},
            "leaderElection.leaseDuration: Invalid value: 2.0: LeaseDuration must be greater than Renew",
        ),
        Wrong({"leaderElection": {"retryPeriod": "soon"}}, "leaderElection.retryPeriod: "),
        Wrong(
            {"extenders": [{"prioritizeVerb": "p"}]},
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
        ),
        Wrong({"extenders": [{"bindVerb": "b"}, {"bindVerb": "b"}]}, "found 2 extenders implementing bind"),
    ],
    ids=lambda case: case.want[:60],
)
def test_rejected_with_the_field(case: Wrong) -> None:
    with pytest.raises(ConfigError) as caught:
        read(**case.fields)
    assert any(case.want in problem for problem in caught.value.problems), caught.value.problems


def test_all_errors_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        read(parallelism=-1, podInitialBackoffSeconds=0, nonsense=1)
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("{}", 'no kind "" is registered for version ""'),
        ("apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration", "v1beta3"),
        ("a: [", "not valid YAML"),
        ("", "expected one KubeSchedulerConfiguration object"),
    ],
)
def test_what_is_no_configuration(text: str, want: str) -> None:
    with pytest.raises(ConfigError, match=want):
        config.load(text)


@pytest.mark.parametrize(
    ("plugins", "want"),
    [
        ({"score": {"enabled": [{"name": "Nope"}]}},
         'profiles[0].plugins.score.enabled[0].name: Invalid value: "Nope": plugin does not exist'),
        ({"score": {"enabled": [{"name": "NodeName"}]}}, '"NodeName": does not extend score plugin'),
        ({"queueSort": {"disabled": [{"name": "*"}]}}, "exactly one queue sort plugin is required"),
        ({"bind": {"disabled": [{"name": "*"}]}}, "at least one bind plugin is needed"),
    ],
)  # fmt: skip
def test_a_profile_that_cannot_run(plugins: dict[str, Any], want: str) -> None:
    with pytest.raises(ProfileError) as caught:
        built({"plugins": plugins})
    assert want in str(caught.value)


def test_plugins_from_outside() -> None:
    path = "tests.scheduler.builders:Scripted"
    classes = plugin_loader.all_classes(registry.IN_TREE, [path])
    assert issubclass(classes["Scripted"], PermitPlugin)
    assert plugin_loader.all_classes(classes, [path]) == classes


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ("nocolon", "expected module:Class"),
        ("tests.scheduler.builders:Nope", "Nope"),
        ("no.such.module:X", "No module named"),
        ("tests.scheduler.builders:node", "expected a subclass .* got an instance of function"),
        ("nominee.scheduler.framework.interface:FilterPlugin", "its class has no name"),
        ("tests.scheduler.queue.replay:PriorityOrder", 'a plugin named "PrioritySort" already exists'),
    ],
)
def test_plugins_that_cannot_be_loaded(path: str, want: str) -> None:
    with pytest.raises(plugin_loader.PluginLoadError, match=want):
        plugin_loader.all_classes(registry.IN_TREE, [path])


OUTSIDE = """
from nominee.scheduler.framework.interface import FilterPlugin

class {name}(FilterPlugin):
    name = "{name}"
"""


def test_plugins_beside_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "outside_of_the_tree.py").write_text(OUTSIDE.format(name="Mine"), encoding="utf-8")
    # A stray file there must not hide a module of ours, or of Python's.
    (tmp_path / "scheduler.py").write_text("raise RuntimeError", encoding="utf-8")
    plugin_loader.search_also([tmp_path, tmp_path])
    assert sys.path[-1] == str(tmp_path)
    assert sys.path.count(str(tmp_path)) == 1
    classes = plugin_loader.all_classes(registry.IN_TREE, ["outside_of_the_tree:Mine"])
    # As the framework makes it: a plugin that needs nothing has no constructor.
    assert classes["Mine"]({}, None).name == "Mine"


def test_a_plugin_that_is_no_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    (tmp_path / "not_quite_python.py").write_text("class X(:\n", encoding="utf-8")
    with pytest.raises(plugin_loader.PluginLoadError, match=r"SyntaxError.*not_quite_python.py, line 1"):
        plugin_loader.by_path("not_quite_python:X")
