"""A scenario from a JSON document that the schema accepts, with the checks that a schema cannot express."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from nominee.lab.scenario.acting.base import Action
from nominee.lab.scenario.conditions.combined import AllOf
from nominee.lab.scenario.conditions.object import ObjectCondition
from nominee.lab.scenario.conditions.table import CONDITIONS
from nominee.lab.scenario.fields import gate_checks, names, paths, substitution
from nominee.lab.scenario.fields.options import AcceptedFinding, ClusterOptions, InvariantException
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.format.documents import Document, InvalidScenarioError
from nominee.lab.scenario.format.model import TIMEOUT_SECONDS, Background, Scenario, Step
from nominee.lab.scenario.format.variants import fill, uses, variants_of
from nominee.lab.scenario.measures.base import NamedMeasure
from nominee.lab.scenario.measures.table import MEASURES
from nominee.lab.scenario.observing.base import ConditionParser
from nominee.lab.scenario.steps.expect import Mode
from nominee.lab.scenario.steps.table import VERBS
from nominee.localcluster.components import BY_NAME
from nominee.machinery.wire.values.scalars import Json


def parse(document: Document) -> Scenario:
    """Return the scenario of a document.

    Raises:
        InvalidScenarioError: it has mistakes; all that were found.
    """
    parser = ScenarioParser(document)
    scenario = parser.scenario(document.value)
    if parser.faults:
        problems = {document.problem(path, message) for path, message in parser.faults}
        raise InvalidScenarioError(sorted(problems, key=lambda problem: (problem.line, problem.field)))
    return scenario


class ScenarioParser(ConditionParser):
    """Makes a scenario of a document."""

    def __init__(self, document: Document) -> None:
        super().__init__(CONDITIONS, otherwise=AllOf(conditions=()))
        self.document = document
        self._saved: set[str] = set()

    def scenario(self, value: Mapping[str, Json]) -> Scenario:
        """Return the scenario; mistakes are in `faults`."""
        metadata, spec = value["metadata"], value["spec"]
        exceptions = spec.get("invariants", {}).get("except", ())
        for index, each in enumerate(exceptions):
            with self.checking(("spec", "invariants", "except", index, "name")):
                names.invariant(each["name"])
        scenario = Scenario(
            name=metadata["name"],
            title=metadata.get("title", ""),
            section=metadata.get("section", ""),
            file=self.document.file,
            timeout_seconds=float(spec.get("timeoutSeconds", TIMEOUT_SECONDS)),
            steps_may_fail=spec.get("stepsMayFail", False),
            cluster=self.cluster_options(("spec", "cluster"), spec.get("cluster", {})),
            steps=tuple(
                step
                for index, each in enumerate(spec["steps"])
                if (step := self.step(index, each)) is not None
            ),
            background=tuple(
                self.background(("spec", "expect", i), each) for i, each in enumerate(spec.get("expect", ()))
            ),
            except_invariants=tuple(
                InvariantException(name=each["name"], reason=each["reason"]) for each in exceptions
            ),
            accepted_findings=tuple(
                AcceptedFinding(**each) for each in spec.get("chaos", {}).get("acceptedFindings", ())
            ),
            document=value,
        )
        return replace(scenario, measures=tuple(self.measures(spec, scenario.steps)))

    # The cluster

    def cluster_options(self, path: FieldPath, value: Mapping[str, Json]) -> ClusterOptions:
        """Return the cluster's options."""
        version = value.get("emulatedVersion", "")
        self.programs = {name for name, own in value.get("components", {}).items() if "command" in own}
        with self.checking((*path, "emulatedVersion")):
            names.version(version)
        shared = self.gates((*path, "featureGates"), value.get("featureGates", {}))
        without = tuple(
            self.whole_component((*path, "without", i), name)
            for i, name in enumerate(value.get("without", ()))
        )
        components = {}
        for name, options in value.get("components", {}).items():
            where = (*path, "components", name)
            process = self.component(where, name)
            if process in without:
                self.fault(where, f"{process} is in spec.cluster.without")
            parsed = self.component_options(where, options, process)
            components[process] = parsed
        cluster = ClusterOptions(
            emulated_version=version,
            feature_gates=shared,
            nodes=value.get("nodes", 0),
            kubelets=value.get("kubelets", 1),
            node_groups=tuple(value.get("nodeGroups", ())),
            components=components,
            without=without,
            restart=value.get("restart", "always") == "always",
            insecure=value.get("insecure", False),
        )
        self.cluster = cluster
        for below, message in gate_checks.of_cluster(cluster, self.programs):
            self.fault((*path, *below), message)
        return cluster

    def whole_component(self, path: FieldPath, text: str) -> str:
        """Return the name of a component, of which a process is no part."""
        name = self.component(path, text)
        if name not in BY_NAME and not self.faults:
            self.fault(path, f"{text} is one process of a component")
        return name

    # Steps

    def step(self, index: int, value: Mapping[str, Json]) -> Step | None:
        """Return one step; None if it has not exactly one verb."""
        path: FieldPath = ("spec", "steps", index)
        verbs = [verb for verb in VERBS if verb in value]
        if len(verbs) != 1:
            found = f"got {' and '.join(verbs)}" if verbs else "got none of them"
            self.fault(path, f"a step has exactly one of {', '.join(VERBS)}; {found}")
            return None
        verb = verbs[0]
        for name in substitution.used(value[verb]):
            if name not in self._saved:
                saved = ", ".join(sorted(self._saved)) or "no variable"
                self.fault((*path, verb), f"${{{name}}} is not saved by an earlier step; saved: {saved}")
        rejected = value.get("rejected", "")
        if rejected and not VERBS[verb].may_be_rejected:
            listed = ", ".join(each.verb for each in VERBS.values() if each.may_be_rejected)
            self.fault((*path, "rejected"), f"only {listed} can be rejected")
        action = VERBS[verb].parse(self, (*path, verb), value[verb], rejected)
        self._check_save(path, value.get("save", {}), action)
        return Step(
            action=action,
            verb=verb,
            line=self.document.line((*path, verb)),
            origin=self.document.origins[index] if self.document.origins else index,
            name=value.get("name", ""),
            save=dict(value.get("save", {})),
        )

    def _check_save(self, path: FieldPath, save: Mapping[str, str], action: Action) -> None:
        for name, text in save.items():
            with self.checking((*path, "save", name)):
                paths.compiled(text)
            self._saved.add(name)
        if save and not action.finds_object:
            self.fault((*path, "save"), "only a wait or expect for an object can save values")

    def background(self, path: FieldPath, value: Mapping[str, Json]) -> Background:
        """Return an expectation over the whole run."""
        modes = [key for key in ("always", "never") if key in value]
        if len(modes) != 1:
            self.fault(path, "give exactly one of always and never")
            return Background(mode=Mode.NEVER, condition=ObjectCondition(kind="Pod"), name="", line=0)
        condition = self.condition((*path, modes[0]), value[modes[0]])
        return Background(
            mode=Mode(modes[0]),
            condition=condition,
            name=value.get("name", ""),
            line=self.document.line(path),
        )

    # Measures

    def measures(self, spec: Mapping[str, Json], steps: Sequence[Step]) -> Iterator[NamedMeasure]:
        """Yield the measures, of each variant if they use its variables."""
        variants = variants_of(spec)
        for name, value in spec.get("measure", {}).items():
            path = ("spec", "measure", name)
            if len(value) != 1:
                self.fault(path, f"a measure has exactly one of {', '.join(MEASURES)}")
                continue
            (key,) = value
            for variant in variants if uses(value, variants) else ({},):
                own = fill(value[key], variant)
                for variable in substitution.used(own):
                    self.fault((*path, key), f"${{{variable}}} is no variable of spec.variants")
                measure = MEASURES[key].parse(self, (*path, key), own)
                for step in measure.steps:
                    if all(each.name != step for each in steps):
                        self.fault((*path, key), f"no step has the name {step!r}")
                yield NamedMeasure(name=name, measure=measure, variant=variant)
