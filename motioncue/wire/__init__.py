"""Packets and numbers: tables of packets, the codec compiled from them, checksums, ciphers, commands."""
