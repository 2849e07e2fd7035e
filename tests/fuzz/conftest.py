"""The files of this folder import each other by their bare names, as the script `run_fuzz.py` does."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
