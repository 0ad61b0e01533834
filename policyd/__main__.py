"""`python -m policyd`: the same as the `policyd` command."""

from __future__ import annotations

import sys

from policyd.cli import main

sys.exit(main())
