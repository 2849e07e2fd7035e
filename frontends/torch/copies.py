"""Converters of the copying variants of views, which convert like the views."""

from __future__ import annotations

from typing import Final

from weft.frontends.torch.converters import CONVERTERS, register

_VIEWS: Final = ("alias", "as_strided", "detach", "diagonal", "expand", "narrow", "permute", "select.int")
_MORE: Final = ("slice.Tensor", "split.Tensor", "split_with_sizes", "squeeze", "squeeze.dim", "squeeze.dims", "t")
_OTHERS: Final = ("transpose.int", "unbind.int", "unfold", "unsqueeze", "view", "view.dtype")

for _view in (*_VIEWS, *_MORE, *_OTHERS):
    _name, _, _overload = _view.partition(".")
    _converter = CONVERTERS[f"aten.{_name}.{_overload or 'default'}"]
    register(f"aten.{_name}_copy.{_overload or 'default'}")(_converter)
