"""All stages of a build, with separate compilation of a model's kernels."""

from __future__ import annotations

from dataclasses import replace

from weft.driver.kernels import compile_kernels, early_helper
from weft.driver.model_report import ModelReport, report_of
from weft.driver.pipeline import Pipeline
from weft.driver.stages import add_versions, load, schedule, to_low, to_tir
from weft.runtime.library import Library
from weft.support.garbage import fewer_collections
from weft.support.isolation import Worker


def compile_module(pipeline: Pipeline) -> tuple[Library, Pipeline]:
    done = lowered(pipeline)
    return load(done), done


def lowered(pipeline: Pipeline) -> Pipeline:
    with fewer_collections(), early_helper(pipeline) as helper:
        return to_low(schedule(_take_kernels(to_tir(pipeline), helper)))


def _take_kernels(pipeline: Pipeline, helper: Worker | None) -> Pipeline:
    if pipeline.target.has_kernels:
        return replace(pipeline, report=report_of(pipeline))
    source = ModelReport(pipeline.module, pipeline.target)
    versions = add_versions(pipeline)
    if not pipeline.options.can_compile_apart(pipeline.target):
        return pipeline
    compiled = compile_kernels(pipeline, helper)
    source.taken(compiled.kernels, versions)
    return replace(compiled, report=source) if compiled.kernels else compiled
