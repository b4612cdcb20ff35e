"""Warnings of the logger `stepwell` about a line of the user's, each given once."""

from __future__ import annotations

import logging

from stepwell.frontend.tracing import place_of, users_frame

LOG = logging.getLogger("stepwell")

_given: set[tuple[str, str]] = set()
"""The topic and the place of each warning that was given."""


def warn_once(topic: str, message: str) -> None:
    """Log ``message`` behind the user's line that is being traced.

    topic : what the message is about: a line has one warning of each topic
    """
    place = place_of(users_frame())
    if (topic, place) not in _given:
        _given.add((topic, place))
        LOG.warning("%s: %s", place, message)
