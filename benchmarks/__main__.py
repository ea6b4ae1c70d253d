"""`python -m benchmarks`: every benchmark in turn, arguments go to the extender's."""

from benchmarks import extender

if __name__ == "__main__":
    extender.main()
