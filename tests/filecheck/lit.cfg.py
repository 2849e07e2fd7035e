"""Lit suite: `*.mlir` and `*.py` files whose RUN lines drive the tools of the environment that runs lit."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from forked import ForkedTest

config.name = "weft"
config.test_format = ForkedTest()
config.suffixes = [".mlir", ".py"]
config.excludes = ["lit.cfg.py", "forked.py"]
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = str(Path(__file__).parents[2] / "build" / "lit")

# Programs that are no tools of weft's are found beside them first.
tools = Path(sys.executable).parent
if not (tools / "weft-opt").exists():
    lit_config.fatal(f"no weft-opt in {tools}: run `make setup`")
config.environment["PATH"] = os.pathsep.join([str(tools), config.environment["PATH"]])
config.environment["WEFT_CACHE"] = "0"
if "WEFT_HOST_CPU" in os.environ:  # `make test-all`: as another host would see it
    config.environment["WEFT_HOST_CPU"] = os.environ["WEFT_HOST_CPU"]
