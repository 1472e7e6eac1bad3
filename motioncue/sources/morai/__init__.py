"""MORAI."""
