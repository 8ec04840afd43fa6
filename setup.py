"""Builds the wheel: the packages of pyproject.toml, the modules compiled from proto/, packed schemas."""

from __future__ import annotations

import shutil
import subprocess
import sys

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithProtos(build_py):
    """An editable install has the link nominee/pb to the modules that `make setup` compiles."""

    def run(self) -> None:
        """Copy the packages, compile the .proto files and pack the schemas beside them."""
        if self.editable_mode:
            super().run()
            return
        # What an earlier build copied and the sources no longer have would be packed again.
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        generated = f"{self.build_lib}/nominee/pb"
        subprocess.run([sys.executable, "proto/compile.py", generated], check=True)
        subprocess.run([sys.executable, "proto/schemas.py", f"{generated}/releases"], check=True)


setup(cmdclass={"build_py": BuildWithProtos})
