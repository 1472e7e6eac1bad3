"""Where simulator, cueing and platform meet: the receiving loop, the emitting loop, the engine."""
