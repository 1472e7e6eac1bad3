"""Transports: endpoints, and their stream and datagram sockets."""
