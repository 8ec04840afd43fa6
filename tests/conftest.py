"""Fixtures for all tests."""

from __future__ import annotations

pytest_plugins = ["tests.support.etcd", "tests.support.etcd_trio", "tests.support.cluster"]
