"""`python -m pisti_env` is the command `pisti`."""

from pisti_env.cli import main

if __name__ == "__main__":
    main()
