"""Simulators and platforms made of software, so that nobody needs hardware to try or test."""
