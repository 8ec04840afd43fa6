"""RunOptions to the scenarios of a command: versions and gates of their clusters, and failpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nominee.lab.scenario.fields import names
from nominee.lab.scenario.fields.options import ClusterOverrides
from nominee.lab.scenario.format.replacing import Programs, words_of
from nominee.lab.scenario.steps.faults.failpoint import ArmFailpoint
from nominee.localcluster.up_options.options import (
    OptionError,
    parse_assignments,
    parse_gates,
    parse_versions,
)

_FAILPOINTS = "--failpoints"
_EXAMPLE = "scheduler=scheduler.bind.before=crash"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Versions and gates by component ("" is for all), and failpoints to arm before the first step.

    A failpoint is its component, its name and its action. `programs` are in the places of components.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    gates: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    failpoints: Sequence[tuple[str, str, str]] = ()
    programs: Programs = field(default_factory=dict)

    @classmethod
    def parse(
        cls,
        versions: Sequence[str],
        gates: Sequence[str],
        failpoints: Sequence[str],
        programs: Programs | None = None,
    ) -> RunOptions:
        """Return the options for the values of --emulated-version, --feature-gates and --failpoints.

        Raises:
            OptionError: a value cannot be read, or there is no such failpoint.
        """
        return cls(
            versions=parse_versions("--emulated-version", versions),
            gates=parse_gates("--feature-gates", gates),
            failpoints=[
                (component, *_failpoint(component, text))
                for component, texts in parse_assignments(_FAILPOINTS, failpoints, _EXAMPLE).items()
                for text in texts
            ],
            programs=programs or {},
        )

    @property
    def overrides(self) -> ClusterOverrides:
        """Return the changes to the cluster."""
        return ClusterOverrides(emulated_versions=self.versions, feature_gates=self.gates)

    @property
    def first(self) -> tuple[ArmFailpoint, ...]:
        """Return the actions before the first step."""
        return tuple(ArmFailpoint(component=c, name=n, action=a) for c, n, a in self.failpoints)

    def words(self) -> list[str]:
        """Return the options of `nominee scenario run`."""
        words = []
        for component, version in self.versions.items():
            words += ["--emulated-version", f"{component}={version}" if component else version]
        for component, gates in self.gates.items():
            for gate, enabled in gates.items():
                text = f"{gate}={str(enabled).lower()}"
                words += ["--feature-gates", f"{component}={text}" if component else text]
        for failpoint in self.failpoints:
            words += [_FAILPOINTS, "=".join(failpoint)]
        return [*words, *words_of(self.programs)]


def _failpoint(component: str, text: str) -> tuple[str, str]:
    """Return name and action of `NAME=ACTION`. Raises: OptionError."""
    name, equals, action = text.partition("=")
    if not equals or not action:
        raise OptionError(_FAILPOINTS, f"{text!r} is not NAME=ACTION, as in {_EXAMPLE}")
    if component == "etcd":
        raise OptionError(_FAILPOINTS, "etcd has no failpoints")
    try:
        names.failpoint(names.process(component)[0], name, action)
    except names.NameProblem as error:
        raise OptionError(_FAILPOINTS, str(error)) from None
    return name, action
