"""Every kind has a row of rules, and validates its objects or says why it does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nominee.apiserver.kinds.core import config_maps
from nominee.apiserver.kinds.rules import IncompleteRules, KindRules, Unvalidated
from nominee.apiserver.kinds.strategy import Strategy
from nominee.apiserver.kinds.table import RULES, WrongRows, rules_of, table
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import KINDS, Kind

_REASON_LENGTH_MIN = 20


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.group_resource)
def test_every_kind_has_rules_of_its_own(kind: Kind[Any]) -> None:
    rules = rules_of(kind)
    assert rules.kind is kind
    assert rules.strategy.kind is kinds.STORED_AS.get(kind, kind)
    assert (rules.conversion is not None) == (kind in kinds.STORED_AS)
    validates = type(rules.strategy).validate is not Strategy.validate
    assert validates or rules.unvalidated is not None
    if rules.unvalidated is not None:
        assert len(rules.unvalidated.reason) >= _REASON_LENGTH_MIN


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.group_resource)
def test_a_row_has_a_strategy_for_each_subresource_that_is_updated(kind: Kind[Any]) -> None:
    acted_on = {"binding", "eviction", "proxy", "scale", "token"}
    assert set(rules_of(kind).strategy.subresources) == kind.subresources - acted_on
    for strategy in rules_of(kind).strategy.subresources.values():
        assert strategy.kind is rules_of(kind).strategy.kind


def test_there_is_no_row_for_a_kind_that_is_not_served() -> None:
    assert set(RULES) == set(KINDS)


def test_a_served_kind_without_a_row_is_an_error() -> None:
    with pytest.raises(WrongRows, match=r"no rules for .*v1 Secret.*: add a row to apiserver.kinds.table"):
        table([config_maps.RULES], [kinds.CONFIG_MAP, kinds.SECRET])


def test_two_rows_for_a_kind_are_an_error() -> None:
    with pytest.raises(WrongRows, match=r"v1 ConfigMap.*two rows"):
        table([config_maps.RULES, config_maps.RULES], [kinds.CONFIG_MAP])


def test_a_row_without_validation_says_why() -> None:
    plain: Strategy[Any] = Strategy(kinds.CONFIG_MAP)
    columns = config_maps.RULES.columns
    with pytest.raises(IncompleteRules, match=r"v1 ConfigMap.*has no validation"):
        KindRules(kind=kinds.CONFIG_MAP, strategy=plain, columns=columns)
    reasoned = Unvalidated("there is nothing in it to check")
    KindRules(kind=kinds.CONFIG_MAP, strategy=plain, columns=columns, unvalidated=reasoned)
    with pytest.raises(IncompleteRules, match="is validated, but"):
        replace(config_maps.RULES, unvalidated=reasoned)
