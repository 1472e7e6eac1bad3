"""The linear-quadratic washout."""
