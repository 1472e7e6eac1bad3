"""BeamNG.tech's Simulink coupling."""
