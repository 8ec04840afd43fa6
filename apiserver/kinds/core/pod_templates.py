"""PodTemplates (kube-apiserver 1.36, ValidatePodTemplate; pkg/registry/core/podtemplate)."""

from __future__ import annotations

from collections.abc import Sequence

from nominee.apiserver.kinds.rules import DeleteResponse, KindRules
from nominee.apiserver.kinds.strategy import Environment, Strategy
from nominee.apiserver.printing.cells import containers, labels
from nominee.apiserver.printing.columns import NAME, Cells, Column, Columns
from nominee.apiserver.validation.equality import same
from nominee.apiserver.validation.objects import metadata
from nominee.apiserver.validation.pods import options as pod_options
from nominee.apiserver.validation.pods import templates
from nominee.apiserver.validation.pods import warnings as pod_warnings
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core

_IMAGES = "Images referenced by each container in the template."
_CONTAINERS = "Names of each container in the template."


class PodTemplateStrategy(Strategy[core.PodTemplate]):
    """Without a spec: the generation counts changes of the template."""

    def prepare_for_create(self, new: core.PodTemplate, env: Environment) -> None:
        new.metadata.generation = 1

    def prepare_for_update(self, new: core.PodTemplate, old: core.PodTemplate, env: Environment) -> None:
        if not same(new.template, old.template):
            new.metadata.generation = old.metadata.generation + 1

    def validate(self, new: core.PodTemplate, env: Environment) -> list[Cause]:
        options = pod_options.of(env.gates)
        return [*self.validate_metadata(new), *templates.pod_template("template", new.template, options)]

    def validate_update(self, new: core.PodTemplate, old: core.PodTemplate, env: Environment) -> list[Cause]:
        options = pod_options.of(env.gates, old.template.spec)
        changed = metadata.object_meta_update(new.metadata, old.metadata)
        return [*changed, *templates.pod_template("template", new.template, options)]

    def warnings(self, new: core.PodTemplate, old: core.PodTemplate | None) -> Sequence[str]:
        if old is not None and new.metadata.generation == old.metadata.generation:
            return ()
        return pod_warnings.of_template(new.template.metadata, new.template.spec, "template.")


def _row(obj: core.PodTemplate, now: float) -> Cells:
    return [*containers(obj.template), labels(obj.template.metadata.labels)]


RULES = KindRules(
    kind=kinds.POD_TEMPLATE,
    strategy=PodTemplateStrategy(kinds.POD_TEMPLATE),
    columns=Columns(
        _row,
        NAME,
        Column("Containers", _CONTAINERS),
        Column("Images", _IMAGES),
        Column("Pod Labels", "The labels for the pod template."),
    ),
    delete_response=DeleteResponse.OBJECT,
)
