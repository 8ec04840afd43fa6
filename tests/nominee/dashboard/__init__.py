"""Tests of `nominee dashboard`."""
