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

# A shell lets programs in the background ignore SIGINT, and nohup SIGHUP, and what they start, too; tests
# send them to both.
for _number, _usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)

pytest_plugins = [
    "tests.support.etcd",
    "tests.support.etcd_trio",
    "tests.support.markers",
    "tests.support.processes",
    "tests.support.scheduling",
    "tests.support.shared_cluster",
    "tests.support.golden_differences",
]
