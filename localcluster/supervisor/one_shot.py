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
    """The end of a run: whether the exit status was 0, and the last lines of output.

    `rest` is the part of them that `OneShot.new_lines` has not returned.
    """

    ok: bool
    output: str
    rest: str = ""


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
        self._error, self._read_bytes = "", 0
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
        outcome = Outcome(code == 0, self._tail(), self._tail(self._read_bytes))
        os.close(self._output)
        return outcome

    def new_lines(self) -> list[str]:
        """Return the whole lines that it has written since the last call."""
        text = os.pread(self._output, _OUTPUT_BYTES_MAX, self._read_bytes)
        whole = text[: text.rfind(b"\n") + 1]
        self._read_bytes += len(whole)
        return whole.decode("utf-8", errors="replace").splitlines()

    def kill(self) -> None:
        """Kill the program."""
        if self._child is not None:
            self._child.signal(Effect.KILL)
            self._child.popen.wait()
        os.close(self._output)

    def _tail(self, begin: int = 0) -> str:
        size = os.fstat(self._output).st_size
        tail = os.pread(self._output, _OUTPUT_BYTES_MAX, max(size - _OUTPUT_BYTES_MAX, begin))
        return tail.decode("utf-8", errors="replace").strip()
