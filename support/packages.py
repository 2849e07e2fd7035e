"""The entry points `xdsl.universe` of installed packages, which may register kinds of target and other extensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.universe import Universe


def installed_universe() -> Universe:
    """Raises `CompileError` for an entry point that cannot be loaded."""
    from xdsl.universe import Universe

    try:
        return Universe.get_multiverse()
    except Exception as error:
        raise CompileError(
            f"{_broken_package()} with an entry point of 'xdsl.universe' cannot be loaded: "
            f"{type(error).__name__}: {error}"
        ) from error


def _broken_package() -> str:
    from importlib.metadata import entry_points

    for entry in entry_points(group="xdsl.universe"):
        try:
            entry.load()
        except Exception:  # noqa: BLE001  any code of the package may run
            return f"package '{entry.dist.name if entry.dist else entry.name}'"
    return "a package"
