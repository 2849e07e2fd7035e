"""A convolution net trained by PyTorch on scikit-learn's digits, exported to ONNX, and compiled by weft.

    pip install 'weft[onnx,torch]' scikit-learn python examples/onnx_digits.py                     # trains, exports,
    imports: about 10 seconds python examples/onnx_digits.py --save digits.onnx  # keeps the model: weft run digits.onnx
    --shape x=1x1x8x8 --check

The data are 1797 scans of written digits, 8x8 pixels each; a quarter is held out. Prints the accuracy on these before
the import, by PyTorch, and after it, by weft; then with 8-bit layers, calibrated on a part of the training data by each
method, and with weights of 8 and 4 bits.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from torch import nn
from xdsl.dialects.builtin import ModuleOp

import weft

EPOCHS, BATCH = 12, 64

Images: TypeAlias = "NDArray[np.float32]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", metavar="FILE", help="where to keep the model")
    arguments = parser.parse_args()

    digits = load_digits()
    images = (digits.images[:, None] / 16).astype(np.float32)
    labels = digits.target.astype(np.int64)
    order = np.random.default_rng(0).permutation(len(images))
    split = len(images) * 3 // 4
    train, test = order[:split], order[split:]

    net = trained(torch.from_numpy(images[train]), torch.from_numpy(labels[train]))
    with torch.no_grad():
        before = net(torch.from_numpy(images[test])).numpy()

    with tempfile.TemporaryDirectory() as folder:
        file = Path(arguments.save or Path(folder) / "digits.onnx")
        export(net, file)
        module = weft.from_onnx(file)
    after = weft.build(module)["main"](images[test])
    found = {"PyTorch": before, "weft": after, **quantized(module, images[train[:256]], images[test])}

    for name, scores in found.items():
        right = int(np.sum(np.argmax(scores, 1) == labels[test]))
        error = np.linalg.norm(scores - before) / np.linalg.norm(before)
        print(f"{name:24} {right} of {len(test)} right, {right / len(test):.2%}, scores {error:.2%} apart")
    print(f"scores differ by {np.max(np.abs(before - after)):.1e} at most")
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4)


def quantized(module: ModuleOp, calibration: Images, images: Images) -> dict[str, Images]:
    """The scores of the quantised net on images, by rounding method."""
    found: dict[str, Images] = {}
    for method in ("minmax", "percentile", "mse"):
        model = weft.quantize(module, "int8", activations="int8", calibrate=[{"x": calibration}], method=method)
        found[f"int8, {method}"] = weft.build(model.mod)["main"](images)
    for weights, group in (("int8", 0), ("int4", 32)):
        model = weft.quantize(module, weights, group)
        found[f"{weights} weights of linear"] = weft.build(model.mod)["main"](images)
    return found


def trained(images: torch.Tensor, labels: torch.Tensor) -> nn.Module:
    """Two convolutions with norms, a pool, and a linear layer, trained by Adam."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the net is small
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 10),
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(images)).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(images[batch]), labels[batch]).backward()
            optimizer.step()
    return net.eval()


def export(net: nn.Module, file: Path) -> None:
    """Write the net to a file, for batches of any size."""
    with warnings.catch_warnings():
        # PyTorch's newer exporter requires onnxscript.
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            net,
            (torch.zeros(1, 1, 8, 8),),
            file,
            input_names=["x"],
            output_names=["scores"],
            dynamic_axes={"x": {0: "n"}, "scores": {0: "n"}},
            dynamo=False,
        )


if __name__ == "__main__":
    main()
