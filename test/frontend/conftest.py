"""Let tests here import `run_traced`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
