"""The rules as compiled code has them: every option a number, in one record that serves all tables.

A compiled function that is called from Python takes the array of that record and looks at
`compiled_rules[0]`; those that it calls take the record, as `rules`.
"""

import functools

import numpy as np

from pisti_env.cards import NUM_CARDS
from pisti_env.rules import Rules

STARTER_JACK_TO = ("pile", "stock_bottom", "stock_middle")
PILE, STOCK_BOTTOM, STOCK_MIDDLE = range(3)
STARTERS_SEEN_BY = ("capturer", "side", "all", "nobody")
CAPTURER, SIDE, ALL, NONE = range(4)

COMPILED_RULES = np.dtype(
    (
        np.record,
        [
            ("players", np.int64),
            ("sides", np.int64),
            ("hand_size", np.int64),
            ("deck_size", np.int64),
            ("num_plays", np.int64),
            ("max_deal_points", np.int64),
            ("card_points", np.int64, (NUM_CARDS,)),
            ("pisti_points", np.int64),
            ("jack_pisti_points", np.int64),
            ("jack_takes_single_points", np.int64),
            ("ten_of_diamonds_pisti_bonus", np.int64),
            ("last_card_pisti", np.int64),
            ("majority_points", np.int64),
            ("majority_cards", np.int64),  # needed by the side with most
            ("starter_jack", np.int64),  # PILE, STOCK_BOTTOM or STOCK_MIDDLE
            ("bottom_card_shown", np.int64),
            ("sweep_leftovers", np.int64),
            ("starters_seen_by", np.int64),  # CAPTURER, SIDE, ALL or NONE
            ("target", np.int64),  # 0: the episode is one deal
            ("win_by", np.int64),
            ("shared_win", np.int64),  # whether a tie at the target ends the match
        ],
    )
)


@functools.lru_cache(maxsize=256)
def compiled_rules(rules: Rules) -> np.ndarray:
    """Return `rules` as a read-only array of one COMPILED_RULES record."""
    majority_cards = {"most": 0, "more_than_half": rules.deck_size // 2 + 1}
    worked_out = {
        "card_points": [rules.card_points(card) for card in range(NUM_CARDS)],
        "majority_cards": majority_cards.get(str(rules.majority), rules.majority),
        "starter_jack": STARTER_JACK_TO.index(rules.starter_jack),
        "sweep_leftovers": rules.leftovers == "sweep",
        "starters_seen_by": STARTERS_SEEN_BY.index(rules.starters_seen_by),
        "target": rules.target or 0,
        "shared_win": rules.tie_at_target == "shared",
    }
    array = np.zeros(1, COMPILED_RULES)
    for name in COMPILED_RULES.names or ():
        array[name] = worked_out[name] if name in worked_out else getattr(rules, name)
    array.setflags(write=False)
    return array
