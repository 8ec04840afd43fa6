"""The environment of a process as arguments: clock, failpoints, logs, rate limits, memos."""
