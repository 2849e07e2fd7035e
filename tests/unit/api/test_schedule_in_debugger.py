"""A Python function over a schedule of linalg is stepped through in Python's debugger, which shows the loops at each
line (`docs/show.md`)."""

import subprocess
import sys
from pathlib import Path

PROGRAM = '''import weft

MODULE = """func.func @mm(%A: tensor<16x32xf32>, %B: tensor<32x24xf32>, %C: tensor<16x24xf32>) -> tensor<16x24xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<16x32xf32>, tensor<32x24xf32>) outs(%C : tensor<16x24xf32>)
    -> tensor<16x24xf32>
  return %D : tensor<16x24xf32>
}"""


def tiled(sch):
    i, j, k = sch.get_loops(sch.get_block("matmul"))
    i0, i1 = sch.split(i, factors=[None, 4])
    sch.reorder(i0, j, k, i1)
    sch.parallel(i0)
    return sch.transform_script()


text = tiled(weft.schedule_of(weft.parse(MODULE).body.block.first_op))
assert "tile_using_forall" in text, text
'''
COMMANDS = ("break tiled", "continue", "next", "display print(sch)", "next", "next", "next", "continue", "quit")


def test_steps(tmp_path: Path) -> None:
    script = tmp_path / "tile.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "pdb", str(script)],
        input="\n".join(COMMANDS),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    shown = [part.split("(Pdb)")[0] for part in done.stdout.split("Schedule of @mm after ")[1:]]
    nests = ["\n".join(line.strip(" │├└─") for line in part.splitlines() if "loop m" in line) for part in shown]
    assert nests[:4] == [
        "loop m in 16",
        "loop m0 in 4\nloop m1 in 4",
        "loop m0 in 4\nloop m1 in 4",
        "loop m0 in 4  parallel\nloop m1 in 4",
    ]
    steps = [int(part.split()[0]) for part in shown[:4]]
    assert steps == [2, 3, 4, 5]
    assert "The program finished" in done.stdout, done.stdout
