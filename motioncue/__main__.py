"""``python -m motioncue`` is the command line."""

from motioncue.cli import main

if __name__ == "__main__":
    main()
