"""The table of models with dynamic axes in docs/models.md, generated from a result of
`benchmarks/dynamic_models.py table`.

python benchmarks/dynamic_models_page.py benchmarks/results/2026-11-28-dynamic-models.md
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass, field
from math import exp, log
from os.path import relpath
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[1] / "docs/models.md"
BEGIN: Final = "<!-- table of models with dynamic axes -->"
END: Final = "<!-- end of the table -->"
_COLUMNS: Final = 6
_LEAST_RATIO: Final = 0.005
"""Half of the last digit of a ratio, substituted for 0.00."""


@dataclass
class Model:
    """The rows of one model in a result."""

    sizes: list[str] = field(default_factory=list[str])
    results: set[str] = field(default_factory=set[str])
    ratios: list[float] = field(default_factory=list[float])


def models_of(result: str) -> dict[str, Model]:
    """The models in the table of a result. Raises `ValueError` if it has none."""
    found: dict[str, Model] = defaultdict(Model)
    for line in result.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == _COLUMNS and cells[0] != "model" and not cells[0].startswith("---"):
            name, sizes, results, _, _, ratio = cells
            found[name].sizes.append(sizes)
            found[name].results.add(results)
            found[name].ratios += [float(ratio)] if ratio else []
    if not found:
        raise ValueError("the result has no table of models")
    return found


def table(models: dict[str, Model]) -> str:
    """A row per model: its sizes, whether results agree, and the ratios of times."""
    lines = ["| model | sizes | results | onnxruntime's time over weft's, geometric mean | least | greatest |"]
    lines.append("|---|---|---|---|---|---|")
    for name, model in models.items():
        times = ["", "", ""]
        if model.ratios:
            mean = exp(sum(log(max(ratio, _LEAST_RATIO)) for ratio in model.ratios) / len(model.ratios))
            times = [f"{number:.2f}" for number in (mean, min(model.ratios), max(model.ratios))]
        sizes = "; ".join(model.sizes)
        lines.append(f"| {name} | {sizes} | {', '.join(sorted(model.results))} | {' | '.join(times)} |")
    return "\n".join(lines)


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    result = Path(sys.argv[1])
    page = PAGE.read_text()
    head, rest = page.split(BEGIN)
    source = f"From [{result.stem}]({relpath(result.resolve(), PAGE.parent)}):"
    PAGE.write_text(f"{head}{BEGIN}\n{source}\n\n{table(models_of(result.read_text()))}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
