"""A router's view of one server, by libzmq: run by kvevents_test.go with Debian's python3-zmq and python3-msgpack.

    python3 kv_events_client.py SUB_ENDPOINT REPLAY_ENDPOINT TOPIC

It subscribes, follows the stream, asks for what it missed, and answers commands on standard input, one JSON line each:

    sync N    what is known once batch N has been applied
    reborn    what is known once a new process has sent its batch 0
    deaf      leave; live batches are missed until "hear"
    hear      come back
    fresh     what a router learns that knows nothing and asks for everything
    req N     the answer that a REQ socket gets to the question for batch N

An event that breaks a rule of llm-d's consumer ends the program with its traceback.
"""

import json
import struct
import sys

import msgpack
import zmq

END = b"\xff" * 8
WAIT = 60_000  # milliseconds
KINDS = ("full_attention", "mla_attention", "sink_full_attention")


class View:
    """What a router knows from batches applied in order."""

    def __init__(self):
        self.next, self.known, self.seen = 0, {}, set()

    def apply(self, payload):
        seconds, events, rank = msgpack.unpackb(payload)
        assert seconds > 1.5e9 and rank == 0, (seconds, rank)
        for event in events:
            getattr(self, event.pop("type"))(**event)
        self.next += 1

    def BlockStored(self, block_hashes, parent_block_hash, token_ids, block_size, lora_id, medium, lora_name, extra_keys,
                    group_idx, kv_cache_spec_kind):
        assert len(token_ids) == block_size * len(block_hashes), (len(token_ids), block_size, len(block_hashes))
        assert parent_block_hash is None or parent_block_hash in self.seen, f"parent {parent_block_hash} is not known"
        assert len(extra_keys) == len(block_hashes) and kv_cache_spec_kind in KINDS and group_idx == 0
        self.known.setdefault(medium, set()).update(block_hashes)
        self.seen.update(block_hashes)

    def BlockRemoved(self, block_hashes, medium, group_idx):
        self.known.setdefault(medium, set()).difference_update(block_hashes)

    def AllBlocksCleared(self):
        self.known.clear()
        self.seen.clear()

    def say(self, **more):
        known = {medium: sorted(hashes) for medium, hashes in self.known.items()}
        print(json.dumps({"next": self.next, "known": known, **more}), flush=True)


def number(frame):
    return struct.unpack(">Q", frame)[0]


class Router:
    def __init__(self, live, replay, topic):
        self.context, self.live, self.replay, self.topic = zmq.Context(), live, replay, topic.encode()
        self.view, self.replays, self.sub = View(), 0, None
        self.hear()

    def hear(self):
        self.sub = self.context.socket(zmq.SUB)
        self.sub.setsockopt(zmq.SUBSCRIBE, b"kv@")
        self.sub.setsockopt(zmq.RCVTIMEO, WAIT)
        self.sub.connect(self.live)

    def deaf(self):
        self.sub.close(0)

    def ask(self, view, kind=zmq.DEALER):
        """Applies every batch from view.next on."""
        with self.context.socket(kind) as s:
            s.setsockopt(zmq.RCVTIMEO, WAIT)
            s.setsockopt(zmq.LINGER, 0)
            s.connect(self.replay)
            s.send_multipart([b"", struct.pack(">Q", view.next)])
            while True:
                empty, topic, seq, payload = s.recv_multipart()
                assert empty == b"", empty
                if seq == END:
                    assert topic == payload == b"", (topic, payload)
                    return
                assert topic == self.topic and number(seq) == view.next, (topic, number(seq), view.next)
                view.apply(payload)

    def follow(self, last):
        """Reads live batches until the last one is applied."""
        view = self.view
        while view.next <= last:
            topic, seq, payload = self.sub.recv_multipart()
            assert topic == self.topic, topic
            if number(seq) > view.next:
                self.replays += 1
                self.ask(view)
            if number(seq) == view.next:
                view.apply(payload)

    def reborn(self):
        """Waits for the first batch of a process that took the place of the one before."""
        while True:
            _, seq, payload = self.sub.recv_multipart()
            if number(seq) == 0:
                self.view.next = 0
                self.view.apply(payload)
                return

    def request(self, start):
        with self.context.socket(zmq.REQ) as s:
            s.setsockopt(zmq.RCVTIMEO, WAIT)
            s.setsockopt(zmq.LINGER, 0)
            s.connect(self.replay)
            s.send(struct.pack(">Q", start))
            topic, seq, payload = s.recv_multipart()
            msgpack.unpackb(payload)
            return number(seq)


def main():
    router = Router(*sys.argv[1:])
    print(json.dumps({"zmq": zmq.zmq_version()}), flush=True)
    for line in sys.stdin:
        match line.split():
            case ["sync", last]:
                router.follow(int(last))
                router.view.say(replays=router.replays)
            case ["reborn"]:
                router.reborn()
                router.view.say()
            case ["deaf"]:
                router.deaf()
                router.view.say()
            case ["hear"]:
                router.hear()
                router.view.say()
            case ["fresh"]:
                view = View()
                router.ask(view)
                view.say()
            case ["req", start]:
                print(json.dumps({"next": router.request(int(start))}), flush=True)
            case words:
                raise ValueError(words)


if __name__ == "__main__":
    main()
