"""A comparison of records, arrays and packets bit by bit, whose failure names what differs first."""

import numpy as np


def assert_same_bits(found, expected, of=""):
    """Fail unless both have the same type, number and bits, NaNs alike; name the channels that differ, and where."""
    __tracebackhide__ = True
    found, expected = np.asarray(found), np.asarray(expected)
    name = f"{of}: " if of else ""
    assert found.dtype == expected.dtype, f"{name}found {found.dtype}, expected is {expected.dtype}"
    assert found.size == expected.size, f"{name}found {found.size} values, expected are {expected.size}"
    if found.tobytes() == expected.tobytes():
        return
    both = zip(channels(found, "values"), channels(expected.reshape(found.shape), "values"), strict=True)
    lines = []
    for (channel, ours), (_, theirs) in both:
        rows = np.flatnonzero((bits(ours) != bits(theirs)).any(axis=-1))
        if len(rows):
            first = tuple(map(int, np.unravel_index(rows[0], ours.shape)))
            lines.append(
                f"{name}{channel}: {len(rows)} of {ours.size} differ, the first at {first}: "
                f"found {ours[first]!r}, expected {theirs[first]!r}"
            )
    assert not lines, "\n".join(lines)


def channels(values, name):
    """Yield the name and the values of each channel of records, however deep; of an array, itself."""
    if values.dtype.names is None:
        yield name, values
        return
    for field in values.dtype.names:
        yield from channels(values[field], field if name == "values" else f"{name}.{field}")


def bits(values):
    """Return the bytes of each value, a row a value; those of NaNs are not defined, and alike here."""
    flat = np.array(values).reshape(-1)
    if flat.dtype.kind == "f":
        flat[np.isnan(flat)] = np.nan
    return np.frombuffer(flat.tobytes(), np.uint8).reshape(len(flat), -1)
