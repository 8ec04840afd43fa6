"""PodTemplates (kube-apiserver 1.36, ValidatePodTemplate; pkg/registry/core/podtemplate)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apiserver.registry.strategy import Environment, Strategy
from apiserver.validation import metadata, pod_options, pod_warnings, templates
from apiserver.validation.equality import same
from machinery.api import kinds
from machinery.api.errors import Cause


class PodTemplateStrategy(Strategy):
    """Without a spec: the generation counts changes of the template."""

    def prepare_for_create(self, new: Any, env: Environment) -> None:
        new.metadata.generation = 1

    def prepare_for_update(self, new: Any, old: Any, env: Environment) -> None:
        if not same(new.template, old.template):
            new.metadata.generation = old.metadata.generation + 1

    def validate(self, new: Any, env: Environment) -> list[Cause]:
        options = pod_options.of(env.gates)
        return self.validate_metadata(new) + templates.pod_template("template", new.template, options)

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        options = pod_options.of(env.gates, old.template.spec)
        changed = metadata.object_meta_update(new.metadata, old.metadata)
        return changed + templates.pod_template("template", new.template, options)

    def warnings(self, new: Any, old: Any | None) -> Sequence[str]:
        if old is not None and new.metadata.generation == old.metadata.generation:
            return ()
        return pod_warnings.of_template(new.template.metadata, new.template.spec, "template.")


STRATEGY = PodTemplateStrategy(kinds.POD_TEMPLATE)
