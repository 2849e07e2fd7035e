"""The pages of the Python API: the public names by subject, whose docstrings mkdocstrings reads from the sources."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PUBLIC = re.compile(r"^from (weft\.\S+) import (\w+)", re.MULTILINE)
_SUBJECTS: Mapping[str, tuple[str, str, str]] = {
    "build": (
        "Building and running",
        "Programs become libraries of functions that take arrays.",
        """build parse parse_file specialize compile load Library Target Interpreter quantize Quantized bind_weights
        tune Tuned set_num_threads get_num_threads jax_jit""",
    ),
    "schedule": (
        "Schedules",
        "[Primitives](../primitives.md) describes the requirements of each step.",
        "Schedule schedule_of parse_trace run_trace decisions_of simplify_trace trace_as_python lower",
    ),
    "frontends": ("Front ends", "Models of other frameworks.", "from_onnx from_torch from_jax"),
    "modules": (
        "Editing modules",
        "Functions of modules, and comparisons.",
        """lookup merge update_function remove_function function_names function_attributes set_function_attribute
        structural_equal assert_structural_equal""",
    ),
    "extensions": (
        "Extensions",
        "What other packages register, and errors.",
        """register_operation register_element_type register_primitive register_target_kind TargetKind
        register_intrinsic register_lowering register_func get_func register_tensor_intrinsic WeftError CompileError
        ScheduleError InternalError""",
    ),
}
_METHODS = {"Library", "Target", "Interpreter", "Quantized", "Tuned", "Schedule", "TargetKind"}
"""Classes whose members are listed."""


def api_pages() -> dict[str, str]:
    """Pages by their places in the site. Raises `ValueError` for a public name without a subject."""
    places = {name: module for module, name in _PUBLIC.findall((ROOT / "api/__init__.pyi").read_text())}
    listed = [name for _, _, names in _SUBJECTS.values() for name in names.split()]
    if set(listed) != set(places) or len(listed) != len(set(listed)):
        wrong = sorted(set(listed) ^ set(places))
        raise ValueError(f"docs/generators/api_pages.py: each public name of weft has one subject, see {wrong}")
    pages: dict[str, str] = {}
    for subject, (title, intro, names) in _SUBJECTS.items():
        parts = [f"# {title}\n\n{intro}\n"]
        parts += [_entry(_source(places[name], name), f"weft.{name}", name in _METHODS) for name in names.split()]
        pages[f"api/{subject}.md"] = "\n".join(parts)
    pages["api/te.md"] = _module_page("weft.te", "Tensor expressions")
    pages["api/graph.md"] = _module_page("weft.graph", "Graphs")
    links = [
        f"- [{page.partition(chr(10))[0].removeprefix('# ')}]({Path(place).name})" for place, page in pages.items()
    ]
    pages["api/README.md"] = (
        "# Python API\n\nThe stable names of weft, with their docstrings.\n\n" + "\n".join(links) + "\n"
    )
    return pages


def _entry(identifier: str, heading: str, has_members: bool) -> str:
    members = "" if has_members else "\n      members: false"
    return f"::: {identifier}\n    options:\n      heading: {heading}\n      toc_label: {heading}{members}\n"


def _source(module: str, name: str) -> str:
    """The definition of a public name: modules of the API may only pass it on."""
    defined = getattr(getattr(import_module(module), name), "__module__", module)
    return f"{defined if str(defined).startswith('weft') else module}.{name}"


def _module_page(module: str, title: str) -> str:
    """A page of the functions and classes of a module that are written as such, and a list of its other names."""
    contents = import_module(module)
    names = [name for name in contents.__all__ if _is_definition(getattr(contents, name), name)]
    others = [name for name in contents.__all__ if name not in names]
    parts = [f"# {title}\n\n```text\n{inspect.getdoc(contents)}\n```\n"]
    parts += [
        _entry(_source(module, name), f"{module}.{name}", inspect.isclass(getattr(contents, name))) for name in names
    ]
    parts += [f"Also: {', '.join(f'`{name}`' for name in others)}.\n"] if others else []
    return "\n".join(parts)


def _is_definition(value: object, name: str) -> bool:
    is_one = inspect.isfunction(value) or inspect.isclass(value)
    return is_one and getattr(value, "__name__", "") == name and str(value.__module__).startswith("weft")
