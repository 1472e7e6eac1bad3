"""``python -m motioncue`` is the command line."""

import os
import signal

# A matrix here is small: threads that share one wait for each other in loops, and take a processor from the emitter.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1") | os.environ

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Until a command is there, there is nothing to end properly: Ctrl-C during the imports ends without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from motioncue.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
