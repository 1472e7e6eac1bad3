"""A line whose device makes its system wait keeps nobody else from going on, and one that is closed stays so."""

import _thread
import sys
import threading

from test_serial import Controller, pty

from motioncue.transports.endpoint import open_line
from motioncue.transports.handles import Line


@pty
def test_other_threads_go_on_while_a_line_is_opened_or_closed(tmp_path):
    """A device that hangs may take seconds for either, in which an operator has to be able to park every seat."""
    controller, went_on, left = Controller(tmp_path), threading.Event(), 20_000
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000.0)  # from now on only who gives way lets another thread run
    try:
        _thread.start_new_thread(went_on.set, ())
        while not went_on.is_set() and left:
            Line(str(controller.path), 115_200)  # closed at once, as nobody keeps it
            left -= 1
    finally:
        sys.setswitchinterval(before)
    assert went_on.is_set()


@pty
def test_a_line_that_is_closed_stays_closed(tmp_path):
    controller = Controller(tmp_path)
    line = open_line(f"serial://{controller.path}")
    controller.unplug()
    assert line.send(b"a") > 0
    controller.plug()
    line.close()
    assert not line.reopen()
    open_line(f"serial://{controller.path}").close()  # nobody has it
