"""User passes at named points between the steps of a sequence."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.passes import ModulePass

from weft.passes.pass_sequence import PipelineStep, points_of
from weft.passes.pipeline_text import parse_passes
from weft.support.build_options import Inserted, Insertions
from weft.support.errors import CompileError, did_you_mean
from weft.support.packages import installed_universe


def with_insertions(passes: Sequence[ModulePass], insertions: Insertions) -> list[PipelineStep]:
    """The steps of a sequence with user passes at `before:POINT` and `after:POINT`.

    Raises `CompileError` for an unknown point, and for items that are neither passes nor names.
    """
    points = points_of(passes)
    given = {_point(key, points): _passes(key, inserted) for key, inserted in insertions.items()}
    steps: list[PipelineStep] = []
    for point, module_pass in zip(points, passes, strict=True):
        steps.extend(PipelineStep(inserted, None) for inserted in given.get(("before", point), ()))
        steps.append(PipelineStep(module_pass, point))
        steps.extend(PipelineStep(inserted, None) for inserted in given.get(("after", point), ()))
    return steps


def parse_insertions(texts: Sequence[str]) -> dict[str, Inserted]:
    """Parse `before:vectorize=my-pass{x=1},other`, one per text. Raises `CompileError`."""
    found: dict[str, Inserted] = {}
    for text in texts:
        key, equals, pipeline = text.partition("=")
        if not equals or not pipeline:
            raise CompileError(f"an inserted pass is given as before:POINT=PASS or after:POINT=PASS, got '{text}'")
        if key in found:
            raise CompileError(f"passes at '{key}' are given twice: list them, separated by commas")
        found[key] = pipeline
    return found


def _point(key: str, points: Sequence[str]) -> tuple[str, str]:
    where, colon, point = key.partition(":")
    if not colon or where not in ("before", "after"):
        raise CompileError(f"passes are inserted at before:POINT or after:POINT, got '{key}'")
    if point not in points:
        listed = ", ".join(points)
        raise CompileError(f"'{key}': no step is called '{point}'{did_you_mean(point, points)}; in order: {listed}")
    return where, point


def _passes(key: str, inserted: Inserted) -> list[ModulePass]:
    if isinstance(inserted, ModulePass):
        return [inserted]
    if isinstance(inserted, str):
        return list(parse_passes(inserted, installed_universe().all_passes))
    if isinstance(inserted, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        return [module_pass for one in inserted for module_pass in _passes(key, one)]
    raise CompileError(f"'{key}': expected a pass, its name or a list of them, got {inserted!r}")
