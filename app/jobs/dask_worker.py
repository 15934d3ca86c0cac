"""`dask worker`, ended with the process that started it: `... PARENT ADDRESS OPTIONS`."""

import logging
import sys

from app.jobs.mortal import die_with


def main() -> None:
    """Run Dask's own command line with the remaining arguments."""
    die_with(int(sys.argv.pop(1)))
    logging.getLogger("distributed").setLevel(logging.WARNING)
    from distributed.cli.dask_worker import main as dask_worker  # noqa: PLC0415

    dask_worker()


if __name__ == "__main__":
    main()
