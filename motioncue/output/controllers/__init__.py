"""Ready descriptions of the packets of controllers, as TOML."""
