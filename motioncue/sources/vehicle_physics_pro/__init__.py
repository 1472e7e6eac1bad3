"""Vehicle Physics Pro."""
