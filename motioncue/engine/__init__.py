"""The engine: the receiving loop, the emitting loop, and what connects them."""
