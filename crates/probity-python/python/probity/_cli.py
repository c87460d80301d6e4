"""The `probity` command, in this process."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

from . import _probity


def _again() -> list[str]:
    """The words that start this program again."""
    script = sys.argv[0]
    if os.path.basename(script) == "probity" and os.path.isfile(script):
        return [sys.executable, os.path.abspath(script)]
    return [sys.executable, "-m", "probity"]


def main() -> NoReturn:
    """Does what the command line says, and ends the process as the program does."""
    # Nothing of Python stands between a signal and the program.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_probity.main(["probity", *sys.argv[1:]], _again()))
