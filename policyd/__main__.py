"""`python -m policyd`: the same as the `policyd` command.

`-m` looks for modules in the working directory first, where a repository, or an agent, may have put any: all that
policyd imports from here on comes from elsewhere. `python -P -m policyd` finds policyd itself elsewhere too.
"""

from __future__ import annotations

import sys

if not sys.flags.safe_path:
    del sys.path[0]

from policyd.cli import main

sys.exit(main())
