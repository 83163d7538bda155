"""Training by self-play, with PyTorch; run from a checkout."""

import os

# Read when torch is imported. By default its idle threads spin while they wait for the next piece
# of work; where anything else runs on the machine, that makes training ten times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
