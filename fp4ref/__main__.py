"""__main__: the command line as ``python -m fp4ref``."""

from fp4ref.commands import main

if __name__ == "__main__":
    main()
