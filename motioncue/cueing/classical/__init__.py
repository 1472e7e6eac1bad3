"""The classical washout."""
