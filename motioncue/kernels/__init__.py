"""What runs inside a tick: structs, inline functions without the GIL, and the classes that own them."""
