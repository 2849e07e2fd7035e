"""Makes `import weft` and the example programs work from a checkout, on machines without installation.

A temporary folder of links gives the checkout's folders their package names.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def make_importable() -> None:
    """Put weft (unless it is installed) and `examples/gpu` on the path of imports."""
    sys.path.insert(0, str(ROOT / "examples" / "gpu"))
    if importlib.util.find_spec("weft") is not None:
        return
    package = Path(tempfile.mkdtemp(prefix="weft-links-")) / "weft"
    package.mkdir()
    for file in [*(ROOT / "api").glob("*.py"), *(path.parent for path in ROOT.glob("*/__init__.py"))]:
        if file.name != "api":
            (package / file.name).symlink_to(file)
    sys.path.insert(0, str(package.parent))
