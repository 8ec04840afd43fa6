"""`python -m nominee.machinery.process.child PARENT MODULE [ARGUMENT...]`: run a module; end with PARENT.

The child asks the kernel for the signal itself, so that its parent needs no `preexec_fn`: with one,
`subprocess` forks, and a process that has used gRPC must not fork.
"""

from __future__ import annotations

import os
import runpy
import sys
from typing import Final

from nominee.machinery.process.parent_death import die_with_parent

_SELF: Final = "nominee.machinery.process.child"


def command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a Python module as a child which ends with this process."""
    return [sys.executable, "-P", "-m", _SELF, str(os.getpid()), module, *arguments]


def main(parent: int, module: str, arguments: list[str]) -> None:
    """Run the module as the main program."""
    die_with_parent(parent)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
