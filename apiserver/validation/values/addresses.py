"""IP addresses, ranges and ports in objects (apimachinery/pkg/util/validation 1.36)."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache

from nominee.apiserver.validation import field
from nominee.machinery.api.errors import Cause

PORT_PROBLEM = "must be between 1 and 65535, inclusive"
_ADDRESS_PROBLEM = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_RANGE_PROBLEM = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Range = ipaddress.IPv4Network | ipaddress.IPv6Network


# An IPv4-mapped IPv6 address and an octet with zeros before it mean one thing to one reader and
# another to the next: KEP-4858 (gate StrictIPCIDRValidation, on since 1.36) refuses them. We refuse
# them whatever version is emulated, so no stored object has any and none must be spared.
_ZEROS = "must not have leading 0s"
_MAPPED = "must not be an IPv4-mapped IPv6 address"
_RANGE_ZEROS = "must not have leading 0s in IP or prefix length"
_RANGE_MAPPED = "must not have an IPv4-mapped IPv6 address"
_RANGE_BITS = "must not have bits set beyond the prefix length"
_PREFIX_DIGITS_MAX = 3
_NEEDLESS_ZEROS = re.compile(r"(?<![0-9a-fA-F])0+(?=[0-9a-fA-F])")


def _sloppily(text: str) -> tuple[Address | None, str]:
    """Parse an address as upstream's ParseIPSloppy does, and return its remaining problem or ""."""
    if "%" in text:
        return None, ""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        try:
            return ipaddress.ip_address(_NEEDLESS_ZEROS.sub("", text)), _ZEROS
        except ValueError:
            return None, ""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (address, "") if mapped is None else (mapped, _MAPPED)


@lru_cache(maxsize=4096)
def parse(text: str) -> Address | None:
    """Return the address, or None for another text; a zone is not part of an address."""
    return _sloppily(text)[0]


def ip_address(path: str, text: str) -> list[Cause]:
    """Upstream: IsValidIPForLegacyField."""
    address, problem = _sloppily(text)
    if address is not None and not problem:
        return []
    return [field.invalid(path, text, problem or _ADDRESS_PROBLEM)]


def ip_range(path: str, text: str) -> list[Cause]:
    """CIDR notation without bits after the prefix; upstream: IsValidCIDRForLegacyField."""
    problem = _range_problem(text)
    return [field.invalid(path, text, problem)] if problem else []


def _range_problem(text: str) -> str:
    base, _, length = text.partition("/")
    address, problem = _sloppily(base)
    bits = _prefix_length(length)
    if address is None or bits is None or bits > (32 if ":" not in base else 128):
        return _RANGE_PROBLEM
    if problem == _ZEROS or (length[0] == "0" and length != "0"):
        return _RANGE_ZEROS
    if problem == _MAPPED:
        return _RANGE_MAPPED
    network = ipaddress.ip_network((address, bits), strict=False)
    return "" if network.network_address == address else _RANGE_BITS


def parse_range(text: str) -> Range | None:
    """Return the range without the bits after its prefix, or None for a text that is not a range."""
    base, _, length = text.partition("/")
    address, problem = _sloppily(base)
    bits = _prefix_length(length)
    if address is None or problem == _MAPPED or bits is None or bits > address.max_prefixlen:
        return None
    return ipaddress.ip_network((address, bits), strict=False)


def _prefix_length(text: str) -> int | None:
    """Read the digits after a range's slash, however many zeros come first."""
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0") or "0"
    return int(digits) if len(digits) <= _PREFIX_DIGITS_MAX else None


def canonical_problems(text: str) -> tuple[str, ...]:
    """Return the problems of an address that must be in canonical form; upstream: IsValidIP."""
    address, problem = _sloppily(text)
    if address is None:
        return (_ADDRESS_PROBLEM,)
    if problem:
        return (problem,)
    return () if text == str(address) else (_not_canonical(str(address)),)


def canonical_range(path: str, text: str) -> list[Cause]:
    """Check a range that must be in canonical form; upstream: IsValidCIDR."""
    if errors := ip_range(path, text):
        return errors
    canonical = str(ipaddress.ip_network(text))
    return [] if text == canonical else [field.invalid(path, text, _not_canonical(canonical))]


def _not_canonical(canonical: str) -> str:
    return f'must be in canonical form ("{canonical}")'


def warnings(path: str, text: str) -> list[str]:
    """Return warnings about a valid address that is not in its canonical form (GetWarningsForIP)."""
    address, problem = _sloppily(text)
    if address is None:
        return []
    if problem:
        future = f'will be considered invalid in a future Kubernetes release: use "{address}"'
        return [f'{path}: non-standard IP address "{text}" {future}']
    return _canonical(f"{path}: IPv6 address", text, str(address))


def range_warnings(path: str, text: str) -> list[str]:
    """Return warnings about a valid range that is not in its canonical form (GetWarningsForCIDR)."""
    if _range_problem(text):
        return []
    return _canonical(f"{path}: IPv6 CIDR value", text, str(ipaddress.ip_network(text)))


def _canonical(what: str, text: str, canonical: str) -> list[str]:
    if text == canonical:
        return []
    return [f'{what} "{text}" should be in RFC 5952 canonical format ("{canonical}")']


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
    """Return the problems of a port's name (IANA_SVC_NAME)."""
    problems = []
    if len(name.encode()) > _NAME_LENGTH_MAX:
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
    """Check an IntOrString that means a port."""
    if type_ == 0:
        return port(path, number)
    return field.check(path, name, port_name)
