"""ServiceCIDRs (kube-apiserver 1.36, pkg/apis/networking/validation ValidateServiceCIDR)."""

from __future__ import annotations

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy, UpdateCheck
from nominee.apiserver.kinds.strategy import Environment, StatusStrategy, keep_metadata
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field
from nominee.apiserver.validation.go_dump import dump
from nominee.apiserver.validation.values import addresses
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import networking

ServiceCIDR = networking.ServiceCIDR

_RANGES_MAX = 2
_PATH = "spec.cidrs"


class ServiceCIDRStrategy(SimpleStrategy[ServiceCIDR]):
    """Upstream leaves the status to any writer of the main resource too."""

    def prepare_for_create(self, new: ServiceCIDR, env: Environment) -> None:
        pass


class ServiceCIDRStatusStrategy(StatusStrategy[ServiceCIDR]):
    """PUT of `status`."""

    def prepare_for_update(self, new: ServiceCIDR, old: ServiceCIDR, env: Environment) -> None:
        super().prepare_for_update(new, old, env)
        keep_metadata(new, old)


def _validate(obj: ServiceCIDR) -> list[Cause]:
    spec, ranges = obj.spec, list(obj.spec.cidrs)
    if not ranges:
        return [field.required(_PATH, "at least one CIDR required")]
    if len(ranges) > _RANGES_MAX:
        return [field.invalid(_PATH, dump(spec), f"may only hold up to {_RANGES_MAX} values")]
    if len(ranges) > 1:
        parsed = [addresses.parse_range(text) for text in ranges]
        if {each.version if each is not None else 0 for each in parsed} != {4, 6}:
            problem = (
                "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
            )
            return [field.invalid(_PATH, dump(spec), problem)]
    return [
        cause
        for index, text in enumerate(ranges)
        for cause in addresses.canonical_range(f"{_PATH}[{index}]", text)
    ]


def _validate_change(new: ServiceCIDR, old: ServiceCIDR) -> list[Cause]:
    return field.immutable(_PATH, list(new.spec.cidrs), list(old.spec.cidrs))


def _row(obj: ServiceCIDR, now: float) -> Cells:
    return [",".join(obj.spec.cidrs)]


RULES = KindRules(
    kind=kinds.SERVICE_CIDR,
    strategy=ServiceCIDRStrategy(
        kinds.SERVICE_CIDR,
        _validate,
        _validate_change,
        updates=UpdateCheck.NOTHING,
        subresources={"status": ServiceCIDRStatusStrategy(kinds.SERVICE_CIDR)},
    ),
    columns=Columns(_row, NAME, Column("CIDRs", "servicecidrspec-networking-v1#cidrs"), AGE),
    read_your_write=True,
)
