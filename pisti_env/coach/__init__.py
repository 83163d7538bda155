"""What a policy thinks of a position, and what each play of a record cost.

```python
from pisti_env.coach import coach, explain
from pisti_env.record import read_records

print(explain(env.position(0), "pisti-2p"))          # a line of text, or a View
print(coach(read_records("deals.toml")[0], 0, "pisti-2p"))
```

Each legal play is followed by playouts: the agent plays on in every seat, in worlds that fit what
the seat to play has seen, and all plays in the same worlds. What a play is worth is the mean of the
points that its side gains from there to the end of the deal, less what the others gain.
"""

from pisti_env.coach.appraise import Estimate
from pisti_env.coach.coach import SAMPLES, Coaching, Judgement, coach
from pisti_env.coach.explain import Choice, Explanation, explain

__all__ = [
    "SAMPLES",
    "Choice",
    "Coaching",
    "Estimate",
    "Explanation",
    "Judgement",
    "coach",
    "explain",
]
