"""The signals that end a process of ours, besides SIGINT."""

from __future__ import annotations

import signal


def termination_signals() -> tuple[signal.Signals, ...]:
    """Return SIGTERM and SIGHUP, or only SIGTERM where SIGHUP is ignored (nohup)."""
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        return (signal.SIGTERM,)
    return signal.SIGTERM, signal.SIGHUP
