"""The page of operators, from their definitions.

    python docs/generators/operator_docs.py > docs/operators.md

A test compares the page with the output. The docstring of every operator states its effect, the dtypes that it takes
(`Dtypes:`) and the function of NumPy or other libraries that it equals (`Equals:`).
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from weft.support.errors import InternalError
from weft.texpr import ops

_HEAD = """# Operators

Generated from the docstrings in `texpr/ops/` by `python docs/generators/operator_docs.py`.

`te.ops` has functions from tensors to tensors, to be used beside `te.compute` and scheduled like it:

```python
from weft import te

A, W = te.placeholder((128, 64), name="A"), te.placeholder((32, 64), name="W")
Y = te.ops.relu(te.ops.dense(A, W), name="Y")
module = te.create_func([A, W, Y])
```

- **Shapes** are static or symbolic (`te.size_var`). Extents that operators compute are sums of products in one form, so
  that `conv2d` with a border of 1 around windows of 3 has the shape of its data, symbols included.
- **Dtypes** do not convert silently: operands have one dtype, and `te.ops.cast` converts. `floats` are float16,
  bfloat16, float32 and float64; `integers` are int8 to int64 and uint8 to uint64, which wrap; `numbers` are both;
  `all` is bool too. Sums of floats of 16 bits are formed in float32.
- **Stages**: the result is computed by a stage called `name` (the operator unless given), stages before it are called
  `<name>_...`. Results that a function returns need names of their own.
- **Errors** are `CompileError`s at the line of the call, with the shapes, axes or dtypes that do not go together.
"""


@dataclass(frozen=True)
class Operator:
    """The parts of the definition of an operator."""

    name: str
    signature: str
    text: str
    dtypes: str
    equals: str


def families() -> dict[str, list[str]]:
    """The operators of each module of `te.ops` that has some, by the module's name."""
    found: dict[str, list[str]] = {}
    for module in iter_modules(ops.__path__):
        names: list[str] = getattr(import_module(f"{ops.__name__}.{module.name}"), "__all__", [])
        if names:
            found[module.name] = names
    return found


def operator(name: str) -> Operator:
    """An operator by its name. Raises InternalError where the docstring does not say what it should."""
    function = getattr(ops, name)
    parameters = inspect.signature(function).parameters.values()
    bare = inspect.Signature([parameter.replace(annotation=parameter.empty) for parameter in parameters])
    text, dtypes, rest = (inspect.getdoc(function) or "").partition("\n\nDtypes: ")
    kinds, equals, call = rest.partition("\nEquals: ")
    if not (text and dtypes and equals and call):
        raise InternalError(f"the docstring of te.ops.{name} does not end with `Dtypes:` and `Equals:`")
    return Operator(name, f"{name}{bare}", text, _line(kinds).removesuffix("."), _line(call).removesuffix("."))


def _line(text: str) -> str:
    return " ".join(text.split())


def operators_markdown() -> str:
    """The page: a section for each family, with a paragraph for each operator."""
    sections: list[str] = []
    for family, names in families().items():
        lines = [f"## {family.replace('_', ' ')}", ""]
        for name in names:
            found = operator(name)
            lines += [
                f"### {name}",
                "",
                f"`te.ops.{found.signature}`",
                "",
                found.text,
                "",
                f"- dtypes: {found.dtypes}",
                f"- equals: {found.equals}",
                "",
            ]
        sections.append("\n".join(lines))
    contents = [
        f"| {family.replace('_', ' ')} | {', '.join(f'[{name}](#{name})' for name in names)} |"
        for family, names in families().items()
    ]
    return "\n".join([_HEAD, "| family | operators |", "|---|---|", *contents, "", "\n".join(sections)])


def main() -> None:
    """Print the page."""
    print(operators_markdown(), end="")


if __name__ == "__main__":
    main()
