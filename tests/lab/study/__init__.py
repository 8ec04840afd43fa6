"""Tests of `nominee study`: plans, observations, statistics, the report, and one run on real processes."""
