"""Between frames: what a tick shows of the motion, whenever frames come."""
