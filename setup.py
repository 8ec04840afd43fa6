"""Builds the wheel: the packages of pyproject.toml, and the modules that are compiled from proto/."""

from __future__ import annotations

import shutil
import subprocess
import sys

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithProtos(build_py):
    """An editable install has the link nominee/pb to the modules that `make setup` compiles."""

    def run(self) -> None:
        """Copy the packages, and compile the .proto files beside them."""
        if self.editable_mode:
            super().run()
            return
        # What an earlier build copied and the sources no longer have would be packed again.
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        subprocess.run([sys.executable, "proto/compile.py", f"{self.build_lib}/nominee/pb"], check=True)


setup(cmdclass={"build_py": BuildWithProtos})
