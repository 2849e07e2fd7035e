"""`weft.Schedule`: the schedule that also shows its module as script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.schedule.recording import step_methods
from weft.schedule.schedule import Schedule as Recorded

if TYPE_CHECKING:
    from typing import TextIO

    from weft.frontends.script.show import Script


@step_methods
class Schedule(Recorded):
    __doc__ = Recorded.__doc__

    # What reads and prints scripts is imported when a script is wanted.

    def script(self) -> Script:
        """The scheduled module as Python script: text that notebooks show with colours."""
        from weft.frontends.script.printer import print_script
        from weft.frontends.script.show import Script

        return Script(print_script(self.mod))

    def show(self, *, color: bool | None = None, file: TextIO | None = None) -> None:
        """Show the script of the scheduled module, in colours where the output has them. See `weft.script.show`."""
        from weft.frontends.script.show import show

        show(self.mod, color=color, file=file)
