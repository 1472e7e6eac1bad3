"""Where bytes come from and go to: endpoints, stream and datagram sockets."""
