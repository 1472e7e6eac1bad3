"""What every room may use: records, filters, lanes, clock, slot, ring; no subject of its own."""
