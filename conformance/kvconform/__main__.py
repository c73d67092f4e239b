"""`python -m kvconform`."""

import sys

from kvconform.cli import main

sys.exit(main())
