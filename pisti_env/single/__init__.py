"""Pişti for one learner: Gymnasium environments in which agents play all other seats.

```python
import gymnasium
import pisti_env

env = gymnasium.make("Pisti-v0", opponent="counting")
observation, info = env.reset(seed=42)
terminated = False
while not terminated:
    action = env.action_space.sample(info["action_mask"])
    observation, reward, terminated, truncated, info = env.step(action)

envs = gymnasium.make_vec("Pisti-v0", num_envs=256, opponent="greedy")
```

| | |
|---|---|
| Action space | `Discrete(15)`, a kind of card; with the face encodings `Discrete(52)`, a card |
| Observation space | `Box(0, 1, (d,), float32)`, or a `Dict` of it and of `action_mask` |
| Infos | `action_mask`, (a,) int8: 1 for each legal action; all zero at the end |

A step plays the learner's card, and then the others' until it is the learner's turn again or the
episode is over. An episode is a deal, or with a `target` a match: then the next deal is dealt
within a step. What an observation holds is told in `pisti_env.pisti_v0`, and by its `describe`.

### Arguments

- `opponent`: who plays the other seats. `"counting"` (default), `"greedy"`, `"random"`, the name of
  a policy that comes with the package, a checkpoint's path, `"mymodule:Agent"`, an agent (anything
  with `act`, `observation` and `rules`; `pisti_env.agents` shows one in ten lines); or several to
  draw from: a list of these, each as likely, or a `pisti_env.agents.hosting.Pool` with weights. One
  is drawn for each table and episode, and has all the seats there.
- `partner`: who plays the seat opposite the learner where there are partners, in any of these
  forms. None: as the opponent at the table.
- `rules`, and single fields of them: `rules="istanbul", players=4`.
- `observation`: the encoding, `"kinds"` by default.
- `mask_in`: `"info"` (default), or `"observation"`: there too, in a `Dict`.
- `rewards`: what the learner's side gains less the mean gain of the other sides: `"difference"`
  (default), `"terminal"` or `"win"`, each as in `pisti_v0`.
- `seat`: the learner's; None (default): drawn anew in every episode.
- `illegal`: what an action does that is not in the hand. `"end"` (default): it ends the episode,
  which counts as terminated, and the reward is minus the most that a side can lose in a deal (for
  `"win"`, by losing). `"raise"`: `ValueError`, and nothing changes.
- `render_mode`: None; `"ansi"`, `render()` returns the learner's view as text; `"rgb_array"`, as a
  picture (360, 480, 3) uint8, with the extra `render`; `"human"`, it is shown in a window after
  every step, with the extra `window` (not for many tables; without a screen it is printed). Of many
  tables `render()` returns a tuple, one for each.
- `reveal`: True draws all hands face up. The learner's observations stay as they are.
- `autoreset_mode`, of many tables: what happens where an episode is over; see below.

A keyword that is none of these is a `TypeError`, as is a `render_mode` that there is not.

### Rewards

A reward is all that the learner's side has gained less what the others have, since the learner's
last decision: by its own card and by everyone's after it. What the others do before the learner's
first decision is part of the first reward. So the rewards of an episode add up to what its side has
in the end, less the others' mean.

### Reset

`reset(seed=…, options={"deck": […], "dealer": i, "scores": […], "seat": i})`, each optional. `seat`
is the learner's in this episode; the rest, and what is refused, is as in `pisti_v0.reset`. So is
`options={"position": …}`, with or without a `deck`: unless `seat` says otherwise, the learner has
the seat of the position's viewer, and what that seat does not know is drawn at each table.

A seed decides this episode and all that follow until the next seed: decks, dealers, the learner's
seats, which opponents are drawn and what they draw. The decks and dealers are those of
`pisti_v0.env` with this seed. Seeds are ints from 0 to 2**64 - 1; before the first seed the stream
is an unpredictable one.

### Many tables

`gymnasium.make_vec("Pisti-v0", num_envs=n, …)` plays n tables at once, with the same arguments: an
opponent is asked once for all tables where it is to play, so a network is called once. With
`illegal="raise"` every action is checked before any card is played.

`reset(seed=s)` gives every table decks of its own, those of table i of `DealBatch` with this seed,
whatever n is; no other seed gives any of them again. (In Gymnasium's own vector environments table
i plays seed s + i, so that runs with neighbouring seeds share nearly all.) Table 0 plays the same
episodes, number for number, as the single environment with seed s, and with `reset(seed=[s_0, …])`
table i plays those of the single environment with seed s_i.

`autoreset_mode` is one of `gymnasium.vector.AutoresetMode`, or its value as text; it is an
attribute too, and in the `metadata`. What happens at a table whose episode is over:

- `NEXT_STEP` (default; what Gymnasium's own vector environments do, its wrappers of observations
  want and RLlib counts on): the step returns the last observation with a mask of zeros. The next
  step begins an episode there, whatever the action is: the reward is 0 and the table is not
  terminated.
- `SAME_STEP`: observations and `infos["action_mask"]` (n, a) show the next episode at once.
  `infos["final_obs"]` (n,) holds the last observations of the old one, None elsewhere, and
  `infos["final_info"]` their infos; `_final_obs` and `_final_info` (n,) bool say where. Every
  action is a decision, which suits training loops of one's own.
- `DISABLED`: it stays as it is, and has to be reset before the next step.

`reset(options={"reset_mask": (n,) bool})` begins an episode at those tables alone; observations and
masks are of all.

### Beside the Gymnasium interface

`env.unwrapped.action_masks()` returns the legal actions as bools; `env.unwrapped.seat` (of many
tables, `seats`) is the learner's seat; `env.unwrapped.illegal_actions` counts illegal actions, in
all episodes so far. `view(seat)`, `score()`, `deals` and `position(seat)` are as those of
`pisti_v0.raw_env`; of many tables `view(table, seat)`, `score(table)`, `deals(table)` and
`position(table, seat)`. `pisti_env.agents.ask(env, agent)` is an agent's action for the learner.
`copy.deepcopy` and `pickle` give an environment that goes on identically, in mid-episode too, if
the agents can be copied.

Where an agent raises or answers with an illegal card, its error is raised from `step` or `reset`.
The step is then half played, so nothing is shown or played (`gymnasium.error.ResetNeeded`) until
`reset()` begins the next episode.
"""

from pisti_env.single.many import PistiVectorEnv
from pisti_env.single.one import PistiEnv

__all__ = ["PistiEnv", "PistiVectorEnv"]
