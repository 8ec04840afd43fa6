"""Fixtures for all tests."""

from __future__ import annotations

import os

# Some client libraries ask a proxy for the loopback too; their cluster is here.
for _proxy in ("http_proxy", "https_proxy", "all_proxy"):
    os.environ.pop(_proxy, None)
    os.environ.pop(_proxy.upper(), None)

pytest_plugins = ["tests.support.etcd", "tests.support.etcd_trio", "tests.support.cluster"]
