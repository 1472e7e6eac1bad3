"""BeamNG.drive."""
