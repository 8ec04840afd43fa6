"""Check the invariants on a simulated cluster while it runs: every write, at the moment it is made."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from nominee.lab.history.fold import Fold
from nominee.lab.history.invariants.check import Check, Result
from nominee.lab.history.invariants.checking.answers import Answer
from nominee.lab.history.invariants.checking.checker import Violation
from nominee.lab.history.invariants.checking.cloud_calls import CloudCall
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.checking.reads import Read
from nominee.lab.history.invariants.table import CHECKERS
from nominee.lab.history.revision import Revision
from nominee.lab.scenario.clusters.answer_observer import AnswerObserver
from nominee.lab.scenario.clusters.cloud_observer import CloudObserver
from nominee.lab.scenario.clusters.read_observer import ReadObserver
from nominee.lab.scenario.clusters.simulated_history import revision_of
from nominee.machinery.wire.envelope import EnvelopeError
from nominee.simulation.etcd.store import Change, Store
from nominee.simulation.network.call import Exchange

_AT_ONCE: Final = frozenset(each.about.name for each in CHECKERS if not each.reads_settings)
_WITH_SETTINGS: Final = frozenset(each.about.name for each in CHECKERS if each.reads_settings)
_SETTINGS: Final = ComponentSettings(records_acknowledged=True, observes_answers=True)


class RunningCheck:
    """Observes the writes of a store, first those that it has already, and the answers on a network."""

    def __init__(self, store: Store, network: Exchange) -> None:
        self._fold = Fold()
        self._check = Check(_SETTINGS, _AT_ONCE)
        self._problem: EnvelopeError | None = None
        self._with_settings: tuple[ComponentSettings, Check] | None = None
        self._observed = 0
        """How many revisions `_with_settings` has observed."""
        self.revisions: list[Revision] = []
        """Every write since the cluster was created."""
        self.violations: list[Violation] = []
        """Those that the writes up to now have shown."""
        for time, changes in zip(store.times, store.log, strict=True):
            self._observe(time, changes)
        store.on_write = self._observe
        self._cloud = CloudObserver(store, self._observe_cloud)
        reads = ReadObserver(self._observe_read)
        network.tap = AnswerObserver(store, self._observe_answer, reads, self._cloud)

    @property
    def scaled_down(self) -> Mapping[str, Sequence[int]]:
        """The revisions at which an autoscaler asked the cloud to delete a node, by node."""
        return self._cloud.deletions

    def _observe(self, time: float, changes: Sequence[Change]) -> None:
        for change in changes:
            revision = revision_of(self._fold, change, time)
            self.revisions.append(revision)
            try:
                self.violations += self._check.observe(revision)
            except EnvelopeError as error:
                # It belongs to the caller of `results`: etcd stores any value.
                self._problem = self._problem or error

    def _observe_answer(self, answer: Answer) -> None:
        self.violations += self._check.observe_answer(answer)

    def _observe_read(self, read: Read) -> None:
        self.violations += self._check.observe_read(read)

    def _observe_cloud(self, call: CloudCall) -> None:
        self.violations += self._check.observe_cloud(call)

    def results(
        self, names: Collection[str], settings: ComponentSettings, evidence: Evidence
    ) -> Sequence[Result]:
        """Return the results of the invariants with these names, if the history ends now.

        Those that read the settings are checked here: the settings of the whole run decide.

        Raises:
            EnvelopeError: a stored value cannot be decoded.
        """
        if self._problem is not None:
            raise self._problem
        checks = [self._check]
        if not _WITH_SETTINGS.isdisjoint(names):
            checks.append(self._checked_with(settings))
        return [each for running in checks for each in running.finish(evidence) if each.invariant in names]

    def _checked_with(self, settings: ComponentSettings) -> Check:
        """Return the check of the invariants that read the settings, on the history so far."""
        if self._with_settings is None or self._with_settings[0] != settings:
            self._with_settings, self._observed = (settings, Check(settings, _WITH_SETTINGS)), 0
        _, running = self._with_settings
        for revision in self.revisions[self._observed :]:
            running.observe(revision)
        self._observed = len(self.revisions)
        return running
