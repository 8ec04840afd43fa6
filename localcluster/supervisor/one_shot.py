"""A program that runs to its end beside the components; its output is kept."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nominee.localcluster.supervisor.children import Child
from nominee.localcluster.supervisor.clock import Monotonic
from nominee.localcluster.supervisor.model.states import Effect

CHECK_OPTION = "--check-options"
"""The option with which a component checks its options and exits."""
CHECK_SECONDS_MAX = 20.0
_OUTPUT_BYTES_MAX = 16 * 1024


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run: whether the exit status was 0, and the last lines of output."""

    ok: bool
    output: str


class OneShot:
    """One run of a program; it dies with this process, as components do."""

    def __init__(
        self, argv: Sequence[str], environment: Mapping[str, str], clock: Monotonic, *, seconds_max: float
    ) -> None:
        """Start it; from the main thread only, as every `Child`."""
        self._clock, self._seconds_max = clock, seconds_max
        self._deadline = clock() + seconds_max
        self._output = os.memfd_create("output", os.MFD_CLOEXEC)
        self._child: Child | None = None
        self._error = ""
        try:
            self._child = Child(argv, environment, self._output)
        except OSError as error:
            self._error = f"cannot start: {error}"

    def poll(self) -> Outcome | None:
        """Return the outcome, or None while the program runs; it is killed after its time limit.

        Do not call it again after it returned an outcome.
        """
        if self._child is None:
            os.close(self._output)
            return Outcome(False, self._error)
        code = self._child.poll()
        if code is None and self._clock() < self._deadline:
            return None
        if code is None:
            self.kill()
            return Outcome(False, f"not done within {self._seconds_max:g} s")
        output = self._tail()
        os.close(self._output)
        return Outcome(code == 0, output)

    def kill(self) -> None:
        """Kill the program."""
        if self._child is not None:
            self._child.signal(Effect.KILL)
            self._child.popen.wait()
        os.close(self._output)

    def _tail(self) -> str:
        size = os.fstat(self._output).st_size
        tail = os.pread(self._output, _OUTPUT_BYTES_MAX, max(size - _OUTPUT_BYTES_MAX, 0))
        return tail.decode("utf-8", errors="replace").strip()
