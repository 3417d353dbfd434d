"""The incident card: what somebody who is woken needs on one screen.

1. `build`: rule, reading and surroundings → card. 2. `surroundings`: model, and what changed just before.
3. `links`: pages of the dashboard at the right time.
"""
