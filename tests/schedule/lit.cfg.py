"""The FileCheck tests that stand beside the other tests of a primitive, run as those of `tests/filecheck` are."""

from pathlib import Path

lit_config.load_config(config, str(Path(__file__).parents[1] / "filecheck" / "lit.cfg.py"))
config.name = "weft-schedule"
config.suffixes = [".mlir"]
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root += "-schedule"
