"""Tables that the compiled codec refuses."""

import pytest

from motioncue.output import dk
from motioncue.wire.codec import Number, Table
from motioncue.wire.packet import Send, Stream


def test_the_codec_refuses_a_format_that_it_lacks():
    for form in ("<f2", "<c8", "S4", "<u8"):
        with pytest.raises(ValueError, match=r"number 0: found format .* allowed are <f4"):
            Table(16, [Number(0, form, 0)])


@pytest.mark.parametrize("offset", [-1, 5, 100])
def test_the_codec_refuses_a_number_outside_the_packet(offset):
    with pytest.raises(ValueError, match=f"number 1: found offset {offset}, allowed is 0 to 4"):
        Table(8, [Number(0, "<f4", 0), Number(offset, "<f4", 0)])


def test_sending_into_a_field_that_is_not_a_4_byte_float_is_refused_by_name():
    with pytest.raises(ValueError, match="'gear'"):
        Stream(dk.GAUGES, (Send("gear", "speed"),)).table()
