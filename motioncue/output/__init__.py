"""What an output is sent: the stages of its chain, its packets, the controllers described here."""
