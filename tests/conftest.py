"""Fixtures for all tests."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# `make test` plays the same examples each time; `make test-all` looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("repeatable")

# Some client libraries ask a proxy for the loopback too; their cluster is here.
for _proxy in ("http_proxy", "https_proxy", "all_proxy"):
    os.environ.pop(_proxy, None)
    os.environ.pop(_proxy.upper(), None)

# A shell lets programs in the background ignore SIGINT, and what they start, too; tests send it to both.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = [
    "tests.support.etcd",
    "tests.support.etcd_trio",
    "tests.support.markers",
    "tests.support.processes",
    "tests.support.scheduling",
    "tests.support.shared_cluster",
    "tests.support.golden_differences",
]
