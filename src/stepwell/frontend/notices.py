"""Warnings of the logger `stepwell` about a user's line, each given once."""

from __future__ import annotations

import logging

from stepwell.frontend.tracing import place_of, users_frame

LOG = logging.getLogger("stepwell")

_given: set[tuple[str, str]] = set()
"""The topic and the place of each warning given so far."""


def warn_once(topic: str, message: str) -> None:
    """Log ``message`` after the user's line that is being traced.

    topic : the subject of the message: a line has at most one warning of each topic
    """
    place = place_of(users_frame())
    if (topic, place) not in _given:
        _given.add((topic, place))
        LOG.warning("%s: %s", place, message)
