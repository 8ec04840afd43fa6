"""IP addresses, ranges and ports in objects (apimachinery/pkg/util/validation 1.36)."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from apiserver.validation import field
from machinery.errors import Cause

PORT_PROBLEM = "must be between 1 and 65535, inclusive"
_ADDRESS_PROBLEM = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_RANGE_PROBLEM = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Range = ipaddress.IPv4Network | ipaddress.IPv6Network


@lru_cache(maxsize=4096)
def parse(text: str) -> Address | None:
    """The address, None where the text is none (a zone is not part of an address)."""
    try:
        return None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return None


def ip_address(path: str, text: str) -> list[Cause]:
    return [] if parse(text) is not None else [field.invalid(path, text, _ADDRESS_PROBLEM)]


def ip_range(path: str, text: str) -> list[Cause]:
    """CIDR notation; bits after the prefix may be set."""
    try:
        if "/" in text:
            ipaddress.ip_network(text, strict=False)
            return []
    except ValueError:
        pass
    return [field.invalid(path, text, _RANGE_PROBLEM)]


def not_special(path: str, text: str) -> list[Cause]:
    """Upstream's refusal of addresses that must not be an endpoint or an external address."""
    address = parse(text)
    if address is None:
        return [field.invalid(path, text, "must be a valid IP address")]
    errors: list[Cause] = []
    if address.is_unspecified:
        errors.append(field.invalid(path, text, f"may not be unspecified ({text})"))
    if address.is_loopback:
        errors.append(field.invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if address.is_link_local:
        errors.append(
            field.invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
        )
    multicast = ipaddress.ip_network("224.0.0.0/24" if address.version == 4 else "ff02::/16")
    if address in multicast:
        problem = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        errors.append(field.invalid(path, text, problem))
    return errors


def port(path: str, number: int) -> list[Cause]:
    return [] if 0 < number < 65536 else [field.invalid(path, number, PORT_PROBLEM)]


_NAME_LENGTH_MAX = 15


def port_name(name: str) -> list[str]:
    """What is wrong with a port's name (IANA_SVC_NAME)."""
    problems = []
    if len(name) > _NAME_LENGTH_MAX:
        problems.append(f"must be no more than {_NAME_LENGTH_MAX} characters")
    lower = all(c in "abcdefghijklmnopqrstuvwxyz0123456789-" for c in name)
    if not lower:
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any(c in "abcdefghijklmnopqrstuvwxyz" for c in name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def port_number_or_name(path: str, type_: int, number: int, name: str) -> list[Cause]:
    """An IntOrString that means a port."""
    if type_ == 0:
        return port(path, number)
    return [field.invalid(path, name, problem) for problem in port_name(name)]
