"""Makes `mlp.mlir`: trains a two-layer perceptron on drawn digits and writes it as a graph function over constants.

    python examples/train_mlp.py                # writes examples/mlp.mlir, in a few seconds, from fixed seeds
    python examples/train_mlp.py --accuracy     # the accuracy of NumPy on digits that were not trained on

The digits are 5x7 bitmaps, rotated, sheared, scaled, shifted and noised on 28x28 pixels, generated without downloads.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from string import Template

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

DIGITS = """
.###. ..#.. .###. ##### ...#. ##### ..##. ##### .###. .###.
#...# .##.. #...# ...#. ..##. #.... .#... ....# #...# #...#
#..## ..#.. ....# ..#.. .#.#. ####. #.... ...#. #...# #...#
#.#.# ..#.. ..##. ...#. #..#. ....# ####. ..#.. .###. .####
##..# ..#.. .#... ....# ##### ....# #...# .#... #...# ....#
#...# ..#.. #.... #...# ...#. #...# #...# .#... #...# ...#.
.###. .###. ##### .###. ...#. .###. .###. .#... .###. .##..
"""
SIZE, HIDDEN = 28, 128
MLIR = Path(__file__).parent / "mlp.mlir"
HEADER = """\
// Two-layer perceptron over constant weights (784 -> 128 -> 10), trained on drawn digits: `examples/train_mlp.py` made
// this file and can make digits to classify. Weights are hexadecimal bytes of little-endian f32.
//
//   weft-opt examples/mlp.mlir -p lower-graph         loops for each operator, and a host function that calls them
//   weft run examples/mlp.mlir --check --time         compile, run, compare with the interpreter, time

"""
GRAPH = """\
func.func @main(%x: tensor<1x784xf32>) -> tensor<1x10xf32> {
  %out = graph.dataflow -> tensor<1x10xf32> {
    %w0 = graph.constant dense<"0x$w0"> : tensor<128x784xf32>
    %b0 = graph.constant dense<"0x$b0"> : tensor<128xf32>
    %w1 = graph.constant dense<"0x$w1"> : tensor<10x128xf32>
    %b1 = graph.constant dense<$b1> : tensor<10xf32>
    %w0t = graph.transpose %w0 : tensor<128x784xf32> -> tensor<784x128xf32>
    %h = graph.matmul %x, %w0t : tensor<1x784xf32>, tensor<784x128xf32> -> tensor<1x128xf32>
    %lv0 = graph.add %h, %b0 : tensor<1x128xf32>, tensor<128xf32> -> tensor<1x128xf32>
    %lv1 = graph.relu %lv0 : tensor<1x128xf32> -> tensor<1x128xf32>
    %w1t = graph.transpose %w1 : tensor<10x128xf32> -> tensor<128x10xf32>
    %s = graph.matmul %lv1, %w1t : tensor<1x128xf32>, tensor<128x10xf32> -> tensor<1x10xf32>
    %scores = graph.add %s, %b1 : tensor<1x10xf32>, tensor<10xf32> -> tensor<1x10xf32>
    graph.output %scores : tensor<1x10xf32>
  }
  func.return %out : tensor<1x10xf32>
}
"""


def digit_bitmaps() -> Floats:
    """The ten digits, (10, 7, 5), with 1 for ink."""
    rows = [[[float(pixel == "#") for pixel in glyph] for glyph in line.split()] for line in DIGITS.split("\n")[1:-1]]
    return np.array(rows, np.float32).transpose(1, 0, 2)


def draw_digits(count: int, seed: int) -> tuple[Floats, NDArray[np.int64]]:
    """`count` images, (count, 784) in 0..1, and their digits."""
    random = np.random.default_rng(seed)
    bitmaps = np.pad(digit_bitmaps(), ((0, 0), (1, 1), (1, 1)))
    labels = random.integers(0, 10, count)
    angle, shear = random.uniform(-0.2, 0.2, count), random.uniform(-0.2, 0.2, count)
    scale = random.uniform(2.6, 3.4, (count, 2))
    shift = random.uniform(-2.5, 2.5, (count, 2))
    y, x = np.meshgrid(np.arange(SIZE), np.arange(SIZE), indexing="ij")
    dy = y[None] - SIZE / 2 + 0.5 - shift[:, :1, None]
    dx = x[None] - SIZE / 2 + 0.5 - shift[:, 1:, None]
    sine, cosine = np.sin(angle)[:, None, None], np.cos(angle)[:, None, None]
    v = (cosine * dy - sine * dx) / scale[:, :1, None] + 4.0
    u = (sine * dy + cosine * dx + shear[:, None, None] * dy) / scale[:, 1:, None] + 3.0
    ink = _sample(bitmaps[labels], v, u)
    noisy = ink * random.uniform(0.7, 1.0, (count, 1, 1)) + random.normal(0.0, 0.08, ink.shape)
    return np.clip(noisy, 0.0, 1.0).astype(np.float32).reshape(count, SIZE * SIZE), labels


def _sample(images: Floats, v: NDArray[np.float64], u: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bilinear samples of images (count, height, width) at rows `v` and columns `u`; zero outside."""
    height, width = images.shape[1:]
    result = np.zeros(v.shape)
    which = np.arange(len(images))[:, None, None]
    for row in (np.floor(v), np.floor(v) + 1):
        for column in (np.floor(u), np.floor(u) + 1):
            weight = np.maximum(0, 1 - abs(v - row)) * np.maximum(0, 1 - abs(u - column))
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            i, j = (np.clip(index, 0, end - 1).astype(int) for index, end in ((row, height), (column, width)))
            result += np.where(inside, weight * images[which, i, j], 0.0)
    return result


def numpy_mlp(x: Floats, w0: Floats, b0: Floats, w1: Floats, b1: Floats) -> Floats:
    """Scores, (count, 10), for images (count, 784)."""
    return np.maximum(x @ w0.T + b0, 0) @ w1.T + b1


def train(images: int = 6000, epochs: int = 12, seed: int = 0) -> dict[str, Floats]:
    """Weights after stochastic gradient descent with momentum on the cross entropy."""
    x, labels = draw_digits(images, seed)
    random = np.random.default_rng(seed + 1)
    w = [
        random.normal(0, np.sqrt(2 / (SIZE * SIZE)), (HIDDEN, SIZE * SIZE)).astype(np.float32),
        np.zeros(HIDDEN, np.float32),
        random.normal(0, np.sqrt(2 / HIDDEN), (10, HIDDEN)).astype(np.float32),
        np.zeros(10, np.float32),
    ]
    speed = [np.zeros_like(p) for p in w]
    for epoch in range(epochs):
        rate = np.float32(0.1 * 0.75**epoch)
        for batch in np.split(random.permutation(images), images // 50):
            for parameter, velocity, slope in zip(w, speed, _slopes(x[batch], labels[batch], w), strict=True):
                velocity *= np.float32(0.9)
                velocity -= rate * slope
                parameter += velocity
    return dict(zip(("w0", "b0", "w1", "b1"), w, strict=True))


def _slopes(x: Floats, labels: NDArray[np.int64], w: list[Floats]) -> list[Floats]:
    hidden = np.maximum(x @ w[0].T + w[1], 0)
    scores = hidden @ w[2].T + w[3]
    share = np.exp(scores - scores.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    share[np.arange(len(x)), labels] -= 1
    share /= len(x)
    back = (share @ w[2]) * (hidden > 0)
    return [back.T @ x, back.sum(axis=0), share.T @ hidden, share.sum(axis=0)]


def module_text(weights: dict[str, Floats]) -> str:
    """The graph function over `weights`."""
    parts = {name: value.astype("<f4").tobytes().hex().upper() for name, value in weights.items()}
    parts["b1"] = "[" + ", ".join(f"{value:.9g}" for value in weights["b1"].tolist()) + "]"
    return HEADER + Template(GRAPH).substitute(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accuracy", action="store_true", help="train and test only, write nothing")
    weights = train()
    if parser.parse_args().accuracy:
        x, labels = draw_digits(2000, seed=100)
        right = numpy_mlp(x, *weights.values()).argmax(axis=1) == labels
        print(f"{right.mean():.1%} of {len(labels)} digits right")
        return
    MLIR.write_text(module_text(weights))
    print(f"wrote {MLIR} ({MLIR.stat().st_size / 1e6:.2f} MB)")


if __name__ == "__main__":
    main()
