"""Model predictive cueing."""
