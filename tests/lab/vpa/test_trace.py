"""Read usage traces in CSV and YAML."""

from __future__ import annotations

import pytest

from nominee.lab.vpa.trace import ALL_CONTAINERS, Trace, TraceError, Usage, parse_trace

YAML = """
- {at: 1m30s, cpu: 1.5}
- {at: 0s, cpu: 400m, memory: 200Mi}
- {at: 2m, container: sidecar, cpu: 50m}
"""
CSV = "at,container,cpu,memory\n1m30s,,1.5,\n0s,,400m,200Mi\n2m,sidecar,50m,\n"


@pytest.mark.parametrize("trace", [parse_trace(YAML, is_csv=False), parse_trace(CSV, is_csv=True)])
def test_both_formats_say_the_same(trace: Trace) -> None:
    assert trace.samples[-1].at_seconds == 120
    assert trace.usage_at(89.9) == {ALL_CONTAINERS: Usage(400, 200 * 2**20)}
    assert trace.usage_at(90) == {ALL_CONTAINERS: Usage(1500, None)}
    assert trace.usage_at(120) == {ALL_CONTAINERS: Usage(1500, None), "sidecar": Usage(50, None)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "the trace has no samples"),
        ("{}", "the trace is not a list of samples with the fields at, container, cpu, memory"),
        ("[1]", "sample 1: not a mapping"),
        ("- {at: 0s}", "sample 1: needs cpu, memory or both"),
        ("- {at: 5, cpu: 1}", "sample 1: at: '5' is not a duration such as 90s or 1m30s"),
        ("- {at: -5s, cpu: 1}", "sample 1: at: '-5s' is not a duration"),
        ("- {at: 0s, cpu: -1}", "sample 1: cpu: '-1' is not a quantity greater than 0"),
        ("- {at: 0s, memory: lots}", "sample 1: memory: 'lots' is not a quantity greater than 0"),
        ("- {at: 0s, cpu: 1, mem: 1Gi}", "sample 1: unknown field 'mem'"),
        ("a: [", "the trace is not YAML"),
    ],
)
def test_an_error_names_the_sample_and_the_field(text: str, message: str) -> None:
    with pytest.raises(TraceError, match="^" + message.replace("(", r"\(")):
        parse_trace(text, is_csv=False)
