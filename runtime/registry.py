"""Python functions that compiled programs may call by name: `weft.support.registry`, where the interpreter finds them too."""

from weft.support.registry import get_func, register_func, registered_names, set_func, unregister_func

__all__ = ["get_func", "register_func", "registered_names", "set_func", "unregister_func"]
