"""Tests of `nominee vpa`: the trace, the decisions, and one run on real processes."""
