"""The motion as it is, for platforms with a washout of their own."""
