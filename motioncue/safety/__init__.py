"""What may be sent, and when: limits and the supervisor."""
