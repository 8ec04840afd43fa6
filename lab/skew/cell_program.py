"""`python -m nominee.lab.skew.cell_program PARENT PLAN [simulated]`: run one cell; end when PARENT ends.

The parent may have threads, as a worker of Dask has, so that the child itself asks for the signal.
"""

from __future__ import annotations

import sys

from nominee.localcluster.output import INTERRUPTED
from nominee.machinery.process.parent_death import die_with_parent

if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]))
    if sys.argv[3:]:
        from nominee.lab.skew.simulated_cell import main
    else:
        from nominee.lab.scenario.play.program import main
    try:
        sys.exit(main(sys.argv[2]))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
