"""A view of the tests of messages: it hears a feed, gives commands, and waits for answers."""

from __future__ import annotations

import json

from process_channels import until

from flowscope.live.protocol import schema
from flowscope.live.watchers.wire import message_from, to_json


class View:
    """A view that acknowledges everything; answers may come from another thread."""

    def __init__(self, feed):
        self.feed, self.got, self.number = feed, [], 0
        self.hear(kind="connect", protocol=schema.PROTOCOL)

    def send(self, message):
        json.dumps(to_json(message))
        self.got.append(message)
        if isinstance(message, schema.Snapshot | schema.Delta):
            self.feed.hear(schema.Ack(7, message.seq), self.send)

    def hear(self, **data):
        self.feed.hear(message_from(json.loads(json.dumps({**data, "view": 7}))), self.send)

    def command(self, name, value=None):
        self.number += 1
        self.hear(kind="command", command_id=self.number, name=name, value=value)
        return next(m for m in reversed(self.got) if isinstance(m, schema.Reply))

    def ask(self, kind, answer, **wish):
        self.number += 1
        self.hear(kind=kind, request_id=self.number, **wish)

        def answers():
            told = [m for m in self.got if isinstance(m, answer)]
            return [m for m in told if m.request_id == self.number]

        until(answers)
        return answers()[0]

    @property
    def debug(self):
        self.feed.tick(0.0)
        return [m.session for m in self.got if getattr(m, "session", None)][-1].debug
