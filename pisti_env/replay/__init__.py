"""Records as they are looked at: text for a terminal, a page for a browser, an animation.

All of them show the same moments, drawn by `pisti_env.render`: a record of which nothing is left
out with every hand face up, one of a viewer as that viewer saw it.
"""

from pisti_env.replay.moments import Moment, check_moment, moment, moments, names_of, title_of
from pisti_env.replay.page import page
from pisti_env.replay.pictures import animation, picture
from pisti_env.replay.text import score_text, text

__all__ = [
    "Moment",
    "animation",
    "check_moment",
    "moment",
    "moments",
    "names_of",
    "page",
    "picture",
    "score_text",
    "text",
    "title_of",
]
