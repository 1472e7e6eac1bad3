"""The coordinated adaptive washout."""
