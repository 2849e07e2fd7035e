"""All stages of a build, with the kernels of a model compiled apart."""

from __future__ import annotations

from dataclasses import replace

from weft.driver.kernels import compile_kernels
from weft.driver.model_report import ModelReport, report_of
from weft.driver.pipeline import Pipeline
from weft.driver.stages import load, schedule, to_low, to_tir
from weft.runtime.library import Library


def compile_module(pipeline: Pipeline) -> tuple[Library, Pipeline]:
    """Compile a module, which is lowered in place."""
    done = lowered(pipeline)
    return load(done), done


def lowered(pipeline: Pipeline) -> Pipeline:
    """All stages before the library."""
    return to_low(schedule(take_kernels(to_tir(pipeline))))


def take_kernels(pipeline: Pipeline) -> Pipeline:
    """Compile the kernels of a model apart, and describe them; other programs stay as they are."""
    if pipeline.target.has_kernels:
        return replace(pipeline, report=report_of(pipeline))
    if not pipeline.options.can_compile_apart(pipeline.target):
        return pipeline
    source = ModelReport(pipeline.module, pipeline.target)
    compiled = compile_kernels(pipeline)
    source.taken(compiled.kernels)
    return replace(compiled, report=source) if compiled.kernels else compiled
