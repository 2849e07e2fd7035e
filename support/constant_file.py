"""The attribute of a module that names the file of its constants, which `driver/weights.py` reads and writes."""

from typing import Final

WEIGHTS: Final = "graph.weights"
