"""Python's garbage collector, set for a server that has loaded what it stays with.

A collection of the oldest generation stops every thread: 70 ms with what a few hundred connections hold, half a
second with what was loaded. So what is loaded is taken out of its sight, and the oldest generation is looked at
rarely: requests leave cycles, and nearly all of them are gone with the young ones.
"""

import gc

_YOUNG = 2_000  # objects that were made and not freed: a collection of them takes a few milliseconds
_MIDDLE = 5  # collections of the young
_OLD = 1_000  # of the middle


def leave_loaded_alone() -> None:
    """Collect from now on, but nothing that is there; the command line turns collecting off while it imports.

    What is there is not collected first: that would stop a server that already answers for a second.
    """
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
    gc.enable()
