"""Tests of the Job controllers."""
