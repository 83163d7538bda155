"""Training by self-play, with PyTorch; run from a checkout."""
