"""Run the programs in TVM 0.27 and in weft, and compare what they give:
`python compare.py --tvm /path/to/tvm/python --weft /path/to/weft/python`. Returns 1 if results differ."""

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tvm", required=True, help="the Python interpreter that has TVM 0.27")
    parser.add_argument("--weft", default=sys.executable, help="the Python interpreter that has weft")
    parser.add_argument("families", nargs="*")
    options = parser.parse_args()
    script = Path(__file__).parent.resolve() / "run_all.py"
    with tempfile.TemporaryDirectory() as folder:
        saved = [Path(folder) / "tvm.npz", Path(folder) / "weft.npz"]
        # Elsewhere than in a checkout of weft, whose folder `tvm` would be TVM.
        for command, path in zip(([options.tvm], [options.weft, "-m", "weft.tvm"]), saved, strict=True):
            subprocess.run([*command, str(script), str(path), *options.families], cwd=folder, check=True)
        peer, own = (np.load(path) for path in saved)
        counts: Counter[tuple[str, str]] = Counter()
        for key in sorted({*peer, *own}):
            family = key.split(".")[0]
            if key not in peer or key not in own:
                verdict = "only in weft" if key in own else "only in TVM"
            else:
                near = peer[key].shape == own[key].shape and np.allclose(peer[key], own[key], rtol=2e-4, atol=2e-5)
                verdict = "equal" if near else "different"
            counts[family, verdict] += 1
            if verdict != "equal":
                print(f"{key}: {verdict}")
        for (family, verdict), count in sorted(counts.items()):
            print(f"{family}: {count} results {verdict}")
    return int(any(verdict == "different" for _, verdict in counts))


if __name__ == "__main__":
    sys.exit(main())
