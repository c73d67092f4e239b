"""Wrong caches at real sizes, judged by the suite: `python -m tools.attacks`, run in `tests/`.

    python -m tools.attacks --quick          # every attack by the amounts of --quick, and what to look at first
    python -m tools.attacks --whole          # by a whole run, ended at the first check that fails
    python -m tools.attacks --write          # by --quick, by whole runs what that misses; the page
    python -m tools.attacks --right --whole  # the right caches, which must pass
    python -m tools.attacks --list           # the attacks in words
    python -m tools.attacks --choose         # choose attacks anew, and write attacks.toml

Results stay in DIR of `--into`, a line each, and what is there is not judged again. It ends with the table and the
rates; exit status 1 where a rate is below its floor, or a right cache fails.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Run it."""
    from hostile.attacks import table  # reads Hypothesis, which the sessions of other tools do not install

    return table.main(__doc__)


if __name__ == "__main__":
    sys.exit(main())
