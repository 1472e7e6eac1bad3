"""The test material of `motioncue check`: drives, their packets, and faults whose effect is known."""
