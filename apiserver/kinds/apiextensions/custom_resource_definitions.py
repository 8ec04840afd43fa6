"""CustomResourceDefinitions: an empty list, which clients ask for (kubectl, client libraries)."""

from __future__ import annotations

from nominee.apiserver.kinds.rules import KindRules, Unvalidated
from nominee.apiserver.kinds.strategy import ReadOnlyStrategy
from nominee.apiserver.printing.columns import NAME_AND_CREATION
from nominee.machinery.api import kinds

RULES = KindRules(
    kind=kinds.CUSTOM_RESOURCE_DEFINITION,
    strategy=ReadOnlyStrategy(kinds.CUSTOM_RESOURCE_DEFINITION),
    columns=NAME_AND_CREATION,
    unvalidated=Unvalidated("no object of this kind can be created: Nominee serves built-in kinds only"),
)
