"""Modules of `helpers` are imported by their bare names in the tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "helpers"))
