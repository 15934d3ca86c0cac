"""A play button and a step slider: the browser goes through frames without the server."""

from collections.abc import Sequence
from typing import Any

from app.figures.base import MUTED, PAPER, TEXT


def playing(steps: Sequence[int], *, milliseconds: int, redraw: bool) -> dict[str, Any]:
    """Return the layout's part for frames that are named by their training steps.

    The last step is shown first. The figure needs a bottom margin of about 128.

    Args:
        steps: Rising; one a frame.
        milliseconds: Of a frame while it plays.
        redraw: Whether a frame is drawn anew, which all but moving points need.
    """
    frame = {"duration": milliseconds, "redraw": redraw}
    # What is drawn anew does not glide.
    glide = {"duration": 0 if redraw else milliseconds, "easing": "linear"}
    stop = {"mode": "immediate", "frame": {"duration": 0, "redraw": False}}
    jump = {
        "mode": "immediate",
        "frame": {"duration": 0, "redraw": redraw},
        "transition": {"duration": 0},
    }
    play = {"frame": frame, "transition": glide}
    buttons = {
        "type": "buttons",
        "direction": "down",
        "showactive": False,
        "x": 0,
        "xanchor": "left",
        "y": 0,
        "yanchor": "top",
        "pad": {"t": 50},
        "bgcolor": PAPER,
        "bordercolor": MUTED,
        "font": {"size": 15, "color": TEXT},
        "buttons": [
            {"label": "▶ Play", "method": "animate", "args": [None, play]},
            {"label": "Pause", "method": "animate", "args": [[None], stop]},
        ],
    }
    slider = {
        "active": len(steps) - 1,
        "x": 0.24,
        "len": 0.76,
        "y": 0,
        "yanchor": "top",
        "pad": {"t": 44},
        "bgcolor": MUTED,
        "activebgcolor": MUTED,
        "bordercolor": MUTED,
        "tickcolor": MUTED,
        "font": {"size": 13, "color": TEXT},
        "currentvalue": {"prefix": "at training step ", "font": {"size": 15, "color": TEXT}},
        "steps": [
            {"label": str(step), "method": "animate", "args": [[str(step)], jump]} for step in steps
        ],
    }
    return {"updatemenus": [buttons], "sliders": [slider]}
