"""Python functions that compiled programs may call by name.

The table is `weft.support.registry`: the interpreter, which knows no runtime, finds them there too.
"""

from weft.support.registry import get_func, register_func, registered_names, set_func, unregister_func

__all__ = ["get_func", "register_func", "registered_names", "set_func", "unregister_func"]
