"""A car made of software: its courses, its trouble, and the ends that send and receive datagrams."""
