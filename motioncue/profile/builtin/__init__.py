"""The built-in profiles, one TOML file each."""
