"""Run as ``python -m stepwell.tools.opt``."""

import sys

from stepwell.tools.opt.command import main

sys.exit(main())
