"""The `nominee` command, whose cells run `fake_cell`."""

from __future__ import annotations

from nominee.cli import main
from nominee.lab.skew.cells import cell_run

cell_run.FUNCTION = "tests.lab.skew.fake_cell:play"

if __name__ == "__main__":
    main()
