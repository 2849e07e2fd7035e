"""Tensor expressions in Python; `weft.te` exports the public names."""
