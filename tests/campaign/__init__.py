"""What `motioncue check` is tried on: drives, the packets that say them, and faults whose truth is known."""
