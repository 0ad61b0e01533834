"""`policyd` as it is typed: run in this process, with a home and a working directory of its own."""

from __future__ import annotations

import os
import subprocess
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from policyd.cli import main


def policyd(*words: str, cwd: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a command; return how it ended and what it printed."""
    env = {"HOME": str(home), "PATH": os.environ["PATH"]}
    out, err = StringIO(), StringIO()
    with chdir(cwd), patch.dict(os.environ, env, clear=True), redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(list(words))
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())
