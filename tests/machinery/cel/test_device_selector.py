"""Selectors as DRA's users write them. The verdicts are those of k8s.io/dynamic-resource-allocation/cel."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from nominee.machinery.api.pb import devices
from nominee.machinery.cel import device_selector
from nominee.machinery.cel.device_selector import Features, compile_selector, device_value
from nominee.machinery.cel.errors import CompileError, CostError, EvaluationError
from nominee.machinery.cel.semver import Semver, SemverError
from nominee.machinery.cel.tokens import with_empty_domains
from nominee.machinery.wire import codec
from tests.support.patience import PATIENCE_SECONDS

GPU = codec.from_json(
    devices.Device,
    {
        "name": "gpu-0",
        "attributes": {
            "model": {"string": "a100"},
            "cores": {"int": 5},
            "driverVersion": {"version": "1.10.0"},
            "other.example.com/ready": {"bool": True},
        },
        "capacity": {"memory": {"value": "2Gi"}},
    },
)
PLAIN = Features()
MINE = 'device.attributes["gpu.example.com"]'
MEMORY = 'device.capacity["gpu.example.com"].memory'


def matches(expression: str, device: devices.Device = GPU, features: Features = PLAIN) -> bool:
    selector = compile_selector(expression, features)
    return selector.matches(device_value("gpu.example.com", device, features))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("true", True),
        ('device.driver == "gpu.example.com"', True),
        (f'{MINE}.model == "a100"', True),
        (f'{MINE}["model"].matches("^a[0-9]+$")', True),
        (f'{MINE}.model.lowerAscii().startsWith("a1")', True),
        (f"{MINE}.cores > 4 && type({MINE}.cores) == int", True),
        ('device.attributes["other.example.com"].ready', True),
        # A domain of which the device has nothing is an empty map when looked up, else not there.
        (f'"nope" in {MINE}', False),
        ('"nope" in device.attributes["no.example.com"]', False),
        ('"no.example.com" in device.attributes', False),
        ('"gpu.example.com" in device.attributes', True),
        ('device.attributes["no.example.com"].exists(key, true)', False),
        ('device.attributes[?"no.example.com"].hasValue()', True),
        ("size(device.attributes) == 2", True),
        (f"has({MINE}.model)", True),
        (f"has({MINE}.nope)", False),
        (f'{MINE}.?nope.orValue("z") == "z"', True),
        ("optional.none().orValue(true)", True),
        (f'cel.bind(mine, {MINE}, mine.model == "a100" && mine.cores == 5)', True),
        ('cel.bind(d, device, d.driver == "x")', False),
        ("device.attributes.all(domain, domain != '')", True),
        (f'{MEMORY}.isGreaterThan(quantity("1Gi"))', True),
        (f'{MEMORY}.compareTo(quantity("2048Mi")) == 0', True),
        (f'{MEMORY} == quantity("2048Mi")', True),
        (f'{MEMORY}.sub(quantity("1Gi")).add(1).isLessThan(quantity("1Gi"))', False),
        (f"{MEMORY}.asInteger() == 2147483648 && {MEMORY}.sign() == 1", True),
        ('isQuantity("2 Gi")', False),
        (f'{MINE}.driverVersion.isGreaterThan(semver("1.9.0"))', True),
        (f'{MINE}.driverVersion.compareTo(semver("1.10.0-rc.1")) == 1', True),
        (f"{MINE}.driverVersion.minor() == 10", True),
        ('semver("v1.0", true).major() == 1 && isSemver("01.2.3")', False),
        ("device.allowMultipleAllocations", False),
        ('[1, 2].map(n, n * 2).exists(n, n == 4) // "device.attributes["', True),
    ],
)
def test_verdicts(expression: str, expected: bool) -> None:
    assert matches(expression) is expected


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("device.bogus == 1", "compilation failed: ERROR: <input>:1:7: undefined field 'bogus'\n"),
        ("nope()", "undeclared reference to 'nope' (in container '')"),
        ("1 +", "Syntax error: mismatched input '<EOF>'"),
        ("device.driver", "must evaluate to bool or the unknown type, not string"),
        (f"{MEMORY} > 3", "found no matching overload for '_>_' applied to '(kubernetes.Quantity, int)'"),
        (f"{MINE}.model.includes('a')", "undeclared reference to 'includes'"),
    ],
)
def test_what_does_not_compile(expression: str, text: str) -> None:
    with pytest.raises(CompileError) as raised:
        compile_selector(expression)
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (f'{MINE}.missing == "x"', "no such key: missing"),
        ('device.attributes["no.example.com"].x == 1', "no such key: x"),
        (f'{MINE}.cores > "a"', "no such overload"),
        (f"{MINE}.model", "CEL result of type string could not be converted to bool"),
        ('quantity("two").sign() == 1', "quantities must match the regular expression"),
    ],
)
def test_what_cannot_be_said_of_a_device(expression: str, text: str) -> None:
    with pytest.raises(EvaluationError, match=f"^{re.escape(text)}"):
        matches(expression)


def test_an_error_behind_a_false_condition_does_not_matter() -> None:
    assert matches(f'"missing" in {MINE} && {MINE}.missing == "x"') is False


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f"{MINE}.cores.includes(5)", True),
        (f"{MINE}.one.includes(1)", True),
        (f"{MINE}.one.includes(true)", False),
        (f"{MINE}.some.includes(true)", False),
        (f"{MINE}.some.includes(2)", True),
    ],
)
def test_truth_is_no_number(expression: str, expected: bool) -> None:
    attributes = {"cores": {"int": 5}, "one": {"int": 1}, "some": {"ints": [1, 2]}}
    device = codec.from_json(devices.Device, {"name": "d", "attributes": attributes})
    assert matches(expression, device, Features(list_attributes=True)) is expected


def test_lists_are_behind_a_gate() -> None:
    device = codec.from_json(
        devices.Device, {"name": "d", "attributes": {"names": {"strings": ["fish", "bird"]}}}
    )
    lists = Features(list_attributes=True)
    assert matches(f'{MINE}.names.includes("fish") && {MINE}.names.size() == 2', device, lists)
    with pytest.raises(EvaluationError, match="attribute names: unsupported attribute value"):
        matches("true", device)


def test_a_wrong_version_is_reported_with_its_attribute() -> None:
    device = codec.from_json(devices.Device, {"name": "d", "attributes": {"v": {"version": "1"}}})
    with pytest.raises(EvaluationError, match="attribute v: parse semantic version"):
        matches("true", device)


def test_nested_loops_are_refused_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    big = str(list(range(10)))
    nested = "true"
    for name in "abcdefg":
        nested = f"{big}.all({name}, {nested})"
    with pytest.raises(CostError, match="too complex, exceeds cost limit"):
        compile_selector(nested)
    monkeypatch.setattr(device_selector, "_worst_cost", lambda compiled, features: 0)
    with pytest.raises(EvaluationError, match="cost limit exceeded"):
        matches(nested)
    compile_selector.cache_clear()


@pytest.mark.parametrize(
    "growing",
    [
        "".join(f"cel.bind(v{n + 1}, v{n} + v{n}, " for n in range(28)),
        "",
    ],
    ids=["doubled", "replaced"],
)
def test_strings_that_grow_without_bound_are_refused(growing: str) -> None:
    if growing:
        expression = f'cel.bind(v0, "xxxxxxxx", {growing} size(v28) > 0' + ")" * 29
    else:
        expression = '"x"' + f'.replace("x", "{"x" * 900}")' * 8 + ' == ""'
    with pytest.raises(CostError, match="too complex, exceeds cost limit"):
        compile_selector(expression)


@pytest.mark.parametrize(
    ("expression", "rewritten"),
    [
        ('device.attributes["a"].b', 'device.attributes[?"a"].orValue({}).b'),
        ("device.attributes.a.b", "device.attributes.?a.orValue({}).b"),
        ('device.attributes[?"a"]', 'optional.of(device.attributes[?"a"].orValue({}))'),
        ('"device.attributes[0]"', '"device.attributes[0]"'),
        (
            'device.attributes[device.attributes["a"].b].c',
            'device.attributes[?device.attributes[?"a"].orValue({}).b].orValue({}).c',
        ),
    ],
)
def test_lookups_of_domains(expression: str, rewritten: str) -> None:
    assert with_empty_domains(expression).replace(" ", "") == rewritten.replace(" ", "")


DIGITS = "9" * 5000


@pytest.mark.parametrize(
    "text", ["1", "1.2", "01.2.3", "1.2.3-01", "v1.2.3", "1.2.3-", "", f"1.2.3-{DIGITS}", f"{DIGITS}.0.0"]
)
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(SemverError):
        Semver.parse(text)


def test_versions_compare_as_semver_says() -> None:
    ordered = [
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
    ]
    ordered += ["1.0.0", "2.0.0"]
    versions = [Semver.parse(text) for text in ordered]
    for position, version in enumerate(versions):
        assert [version.compare(other) for other in versions] == [
            (position > i) - (position < i) for i in range(len(versions))
        ]


def test_the_library_loads_with_the_first_expression() -> None:
    code = (
        "import sys; from nominee.machinery.cel import device_selector as d\n"
        "assert 'cel_expr_python' not in sys.modules\n"
        "d.compile_selector('true'); assert 'cel_expr_python' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE_SECONDS)
