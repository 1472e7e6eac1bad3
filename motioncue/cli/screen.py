"""The terminal: shows views if there is one, else nothing."""

import os
import sys
from types import TracebackType
from typing import IO, cast

from rich.console import Console
from rich.live import Live

from motioncue.cli.bars import Glyphs, glyphs_for
from motioncue.cli.live import View, render
from motioncue.cli.unblocked import Unblocked

__all__ = ["PERIOD_S", "Screen", "console", "wanted"]

PERIOD_S = 1 / 15
"""Time between pictures [s]."""


def console(output: Unblocked | None = None) -> Console:
    """Return a rich console on standard output, or on `output`."""
    return Console(file=cast(IO[str], output or sys.stdout), highlight=False, emoji=False, markup=False)


def wanted() -> bool:
    """Say whether standard output is a terminal that can show moving pictures."""
    return sys.stdout is not None and sys.stdout.isatty() and not console().is_dumb_terminal


def glyphs_of(output: Console) -> Glyphs:
    """Return the glyphs for a console."""
    return glyphs_for(output.encoding, colors=output.color_system is not None and not output.no_color)


class Screen:
    """Shows views on a screen of its own, which it restores at the end; does nothing if not `live`.

    A frozen terminal, which accepts no more output, blocks nobody.
    """

    def __init__(self, *, live: bool) -> None:
        self.live = live
        self._output = Unblocked(sys.stdout) if live else None
        self._console = console(self._output)
        self._glyphs = glyphs_of(self._console)
        self._live = Live(
            console=self._console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )

    def __enter__(self) -> "Screen":
        """Take over the screen."""
        if self.live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Restore the screen."""
        if self._output is not None:
            self._live.stop()
            if not self._output.close():  # anything else printed would wait forever
                sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115

    def show(self, view: View) -> None:
        """Draw a view, unless the terminal has not accepted the last one yet."""
        if self._output is not None and not self._output.pending:
            width, height = self._console.size
            self._live.update(render(view, width, height, self._glyphs), refresh=True)
