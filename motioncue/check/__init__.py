"""Whether a simulator's data agree with themselves: signs, axes, units, clocks."""
