"""The built-in platforms, one TOML file each."""
