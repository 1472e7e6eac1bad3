"""Every C struct of core/records.pxd, and the dtype that must have its layout."""

from motioncue.core.channels import ACTUATION_DTYPE, CUE_DTYPE, MOTION_DTYPE, TELEMETRY_DTYPE, TICK_DTYPE

RECORDS = {
    "Motion": MOTION_DTYPE,
    "Cue": CUE_DTYPE,
    "Actuation": ACTUATION_DTYPE,
    "Tick": TICK_DTYPE,
    "Telemetry": TELEMETRY_DTYPE,
}


def layouts_source() -> str:
    """Return Cython source of a function that says where the compiler put every field of every record."""
    lines = ["", "def layouts():", "    return {"]
    for struct, dtype in RECORDS.items():
        lines.append(f"        {struct!r}: (sizeof({struct}), {{")
        for name in dtype.names:
            member = f"cue.{name}" if struct == "Actuation" and name in CUE_DTYPE.names else name
            lines.append(f"            {name!r}: <Py_ssize_t>&(<{struct}*>NULL).{member},")
        lines.append("        }),")
    return "\n".join([*lines, "    }", ""])
