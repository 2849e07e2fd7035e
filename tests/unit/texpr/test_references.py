"""References read arguments of their operators, with the defaults of the functions of `te.ops`."""

import inspect
from typing import Any

import numpy as np
import pytest

from weft.texpr import ops
from weft.texpr.references import reference_of

OWN = [name for name in sorted(ops.__all__) if getattr(reference_of(name), "__module__", "").startswith("weft.")]
INTERNAL = {"attention": {"past"}}
"""Parameters that only other references pass."""


def parameters_of(function: Any) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


def test_most_references_are_of_weft() -> None:
    assert len(OWN) > 100


@pytest.mark.parametrize("name", OWN)
def test_references_name_parameters_of_their_operators(name: str) -> None:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    read = {key for key, parameter in parameters_of(reference_of(name)).items() if parameter.kind not in kinds}
    assert read <= {*parameters_of(getattr(ops, name)), *INTERNAL.get(name, ())}


def test_missing_arguments_are_the_defaults_of_the_operator() -> None:
    data = np.array([[-2.0, 0.5], [1.0, 4.0]], np.float32)
    np.testing.assert_array_equal(reference_of("leaky_relu")(data), reference_of("leaky_relu")(data, 0.01))
    np.testing.assert_array_equal(reference_of("topk")(data, 1)[0], [[0.5], [4.0]])
    np.testing.assert_array_equal(reference_of("cumsum")(data, reverse=True), [3.5, 5.5, 5.0, 4.0])


def test_missing_and_unknown_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match=r"one_hot\(\) missing 1 required positional argument: 'depth'"):
        reference_of("one_hot")(np.array([0, 1]))
    with pytest.raises(TypeError, match=r"dequantize\(\) takes data, scale, zero_point, .*, got 2, along"):
        reference_of("dequantize")(np.array([0, 1]), np.array(0.5), along=0)
