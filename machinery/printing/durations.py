"""Durations as kubectl prints them.

Source: apimachinery 1.36, pkg/util/duration (HumanDuration).
"""

from __future__ import annotations

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def human_duration(seconds: float) -> str:
    """Return a duration with about two digits: `5s`, `3m20s`, `17m`, `5h2m`, `4d`, `2y11d`.

    Clocks may differ by a second: from -2 to 0 seconds it is `0s`, below that `<invalid>`.
    """
    s = int(seconds)
    if s < -1:
        return "<invalid>"
    if s < 2 * _MINUTE:
        return f"{max(s, 0)}s"
    if s < 10 * _MINUTE:
        return _pair(s // _MINUTE, "m", s % _MINUTE, "s")
    if s < 3 * _HOUR:
        return f"{s // _MINUTE}m"
    if s < 8 * _HOUR:
        return _pair(s // _HOUR, "h", s % _HOUR // _MINUTE, "m")
    if s < 2 * _DAY:
        return f"{s // _HOUR}h"
    if s < 8 * _DAY:
        return _pair(s // _DAY, "d", s % _DAY // _HOUR, "h")
    if s < 2 * _YEAR:
        return f"{s // _DAY}d"
    if s < 8 * _YEAR:
        return _pair(s // _YEAR, "y", s % _YEAR // _DAY, "d")
    return f"{s // _YEAR}y"


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
