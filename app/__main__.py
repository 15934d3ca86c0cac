"""`python -m app [OPTIONS of streamlit run]`: the app, its queue looked after from the start.

`python -m streamlit run app/main.py` is the same, but for one thing: Streamlit runs our code
when the first page is opened, so jobs that were open when the machine went down wait until then.
"""

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy is imported

from streamlit.web.cli import main

from app import settings
from app.jobs.keeper import Keeper
from app.jobs.store import Store

if __name__ == "__main__":
    ours = settings.current()
    Keeper(Store(ours.runs_folder, ours.limits)).start()
    sys.argv = ["streamlit", "run", str(settings.ROOT / "app" / "main.py"), *sys.argv[1:]]
    main()
