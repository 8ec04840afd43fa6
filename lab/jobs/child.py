"""`python -m nominee.lab.jobs.child PARENT FILE DESCRIPTOR`: run the job of a file; end when PARENT ends.

Its results go to the descriptor, one line of JSON each. The parent may have threads, as a worker of Dask
has, so that the child itself asks for the signal.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from importlib import import_module
from pathlib import Path

from nominee.machinery.process.parent_death import die_with_parent


def main(file: Path, descriptor: int) -> None:
    """Call the function of a job, and write its results."""
    function, arguments = pickle.loads(file.read_bytes())
    module, _, name = function.partition(":")
    os.set_inheritable(descriptor, False)
    with open(descriptor, "w", encoding="utf-8") as results:

        def write(value: object) -> None:
            results.write(f"{json.dumps(value)}\n")
            results.flush()

        getattr(import_module(module), name)(file.parent, write, *arguments)


if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]))
    from nominee.localcluster import output

    try:
        main(Path(sys.argv[2]), int(sys.argv[3]))
    except KeyboardInterrupt:
        sys.exit(output.INTERRUPTED)
    except (OSError, BaseExceptionGroup) as error:
        if not output.is_lost(error):
            raise
        sys.exit(1)
