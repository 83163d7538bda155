"""How fast the library is, and how fast others are; run from a checkout."""
