"""Students in front of a running app: each a session over Streamlit's own websocket protocol.

A student opens a page, thinks, types a sentence nobody typed before, and waits for the rerun to
be over. Loopback only. Used by `beside_jobs.py`.
"""

import asyncio
import random
import time
from typing import Any

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

TIMEOUT = 60.0
WORDS = ("cat", "dog", "bird", "ball", "red", "big", "little", "saw", "took", "ran", "mom", "tree")


class Student:
    """One session."""

    def __init__(self, port: int, page: str, number: int) -> None:
        self._url, self._page = f"127.0.0.1:{port}", page
        self._random = random.Random(number)
        self._state: dict[str, WidgetState] = {}
        self._boxes: dict[str, tuple[str, str]] = {}
        self._page_hash = ""
        self.milliseconds: list[float] = []

    async def attend(self, box: str, rounds: int, think: float) -> None:
        """Open the page and type a sentence so many times; raises what a person would see."""
        address = f"ws://{self._url}/_stcore/stream"
        async with websockets.connect(
            address, subprotocols=["streamlit"], max_size=None, origin=f"http://{self._url}"
        ) as socket:
            await self._rerun(socket, "")
            for _ in range(rounds):
                await asyncio.sleep(think * self._random.uniform(0.5, 1.5))
                identity, fragment = self._boxes[box]
                text = " ".join(self._random.choices(WORDS, k=12))
                self._state[identity] = WidgetState(id=identity, string_value=text)
                started = time.perf_counter()
                await self._rerun(socket, fragment)
                self.milliseconds.append((time.perf_counter() - started) * 1e3)

    async def _rerun(self, socket: Any, fragment: str) -> None:
        message = BackMsg()
        asked = message.rerun_script
        asked.fragment_id = fragment
        asked.widget_states.widgets.extend(self._state.values())
        if self._page_hash:
            asked.page_script_hash = self._page_hash
        else:
            asked.page_name = self._page
        asked.context_info.url = f"http://{self._url}/{self._page}"
        await socket.send(message.SerializeToString())
        await asyncio.wait_for(self._until_over(socket, fragment), TIMEOUT)

    async def _until_over(self, socket: Any, fragment: str) -> None:
        ours: str | None = None
        while True:
            message = ForwardMsg()
            message.ParseFromString(await socket.recv())
            kind, run = message.WhichOneof("type"), message.metadata.run
            if kind == "new_session" and (not fragment or fragment in run.fragment_ids):
                ours = run.script_run_id
            elif kind == "navigation":
                self._page_hash = message.navigation.page_script_hash
            elif kind == "delta":
                self._note(message)
            elif kind == "script_finished" and run.script_run_id == ours:
                if message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                    return
                ours = None

    def _note(self, message: ForwardMsg) -> None:
        if message.delta.WhichOneof("type") != "new_element":
            return
        element = message.delta.new_element
        if element.WhichOneof("type") == "exception":
            raise RuntimeError(f"{element.exception.type}: {element.exception.message}")
        if element.WhichOneof("type") == "text_input":
            identity = element.text_input.id
            self._boxes[element.text_input.label] = (identity, message.delta.fragment_id)


async def attend(
    port: int, page: str, box: str, *, students: int, rounds: int, think: float
) -> list[float]:
    """Let a class type; return the milliseconds of every rerun."""
    group = [Student(port, page, number) for number in range(students)]
    await asyncio.gather(*(each.attend(box, rounds, think) for each in group))
    return [each for student in group for each in student.milliseconds]
