"""How long the app takes from start to its first page, and what memory it then holds.

Starts the server as `make run` does, asks the health address until it answers, opens one
session on each page over the websocket protocol of a browser, and reads the process's resident
memory once every checkpoint is loaded. The numbers are this machine's; the first page is also
given as a ratio to a bare `import streamlit`.
"""

import asyncio
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("", "attention", "ablation")


def main() -> None:
    """Start, measure, stop."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import streamlit"], check=True)
    bare = time.perf_counter() - start
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    start = time.perf_counter()
    server = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app/main.py", "--server.port", str(port)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_healthy(port, server)
        healthy = time.perf_counter() - start
        asyncio.run(open_page(port, PAGES[0]))
        first = time.perf_counter() - start
        print(f"health after {healthy:.2f} s, first page after {first:.2f} s")
        print(f"first page = {first / bare:.1f}x a bare 'import streamlit' ({bare:.2f} s)")
        for page in PAGES[1:]:
            began = time.perf_counter()
            asyncio.run(open_page(port, page))
            print(f"first visit of /{page}: {time.perf_counter() - began:.2f} s")
        print(f"resident memory with every checkpoint loaded: {resident_mb(server.pid):.0f} MB")
    finally:
        server.terminate()
        server.wait(10)


def wait_until_healthy(port: int, server: subprocess.Popen[bytes], limit: float = 30.0) -> None:
    """Ask the health address until it answers, or the server ends, or time is up."""
    until = time.monotonic() + limit
    while time.monotonic() < until and server.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.02)
        else:
            return
    raise RuntimeError("the server did not start")


async def open_page(port: int, page: str) -> None:
    """Run a page once, as a new browser session does, and refuse one that shows an exception."""
    message = BackMsg()
    message.rerun_script.page_name = page
    address = f"ws://127.0.0.1:{port}/_stcore/stream"
    async with websockets.connect(address, subprotocols=["streamlit"], max_size=None) as socket_:
        await socket_.send(message.SerializeToString())
        async for data in socket_:
            answer = ForwardMsg()
            answer.ParseFromString(data)
            kind = answer.WhichOneof("type")
            if kind == "delta" and answer.delta.new_element.WhichOneof("type") == "exception":
                raise RuntimeError(answer.delta.new_element.exception.message)
            if kind == "script_finished":
                return


def resident_mb(pid: int) -> float:
    """Return a process's resident memory in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
