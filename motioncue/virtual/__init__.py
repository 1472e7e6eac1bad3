"""Simulators and platforms in software, so that trying and testing needs no hardware."""
