#!/usr/bin/env python3
"""Control of the hoist on the jetty.

It never lifts above the limit.
"""
import time

LIMIT = 300  # kilograms


class Winch:
    """A winch with one drum."""

    def __init__(self, load):
        self.load = load

    @property
    def safe(self):
        '''Whether the load may be lifted.'''
        def under(x):
            return x < LIMIT
        return under(self.load)


# Lifts a boat out of the water
# and waits until it drips dry.
async def lift(boat):
    time.sleep(60)
