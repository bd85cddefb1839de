"""Serves kazoo over the line protocol described in peer.go. Usage: kazoo_peer.py SERVERS TIMEOUT_MS."""

import logging
import queue
import sys
import threading

from kazoo.client import KazooClient, KazooState
from kazoo.recipe.lock import Lock, ReadLock, WriteLock

logging.disable(logging.CRITICAL)
threading.stack_size(256 * 1024)

REQUESTS = [
    "open",
    "end SESSION",
    "contender SESSION KIND PATH [MORE]",
    "lock CONTENDER",
    "unlock CONTENDER",
    "held CONTENDER",
    "sign CONTENDER",
    "revoked CONTENDER",
    "close CONTENDER",
    "revoke SESSION NODE",
    "leader SESSION KIND PATH",
]
USAGES = {text.split()[0]: text for text in REQUESTS}

# Other clients' nodes contain "-lock-" in a mutex's queue, and Curator's "-__READ__" or "-__WRIT__" in a read-write lock's.
RECIPES = {
    "plain": lambda client, path: client.Lock(path),
    "mutex": lambda client, path: Lock(client, path, extra_lock_patterns=["-lock-"]),
    "read": lambda client, path: ReadLock(client, path, extra_lock_patterns=["-__WRIT__"]),
    "write": lambda client, path: WriteLock(client, path, extra_lock_patterns=["-__WRIT__", "-__READ__"]),
}

out = threading.Lock()
sessions = {}
contenders = {}
numbers = iter(range(1, 1 << 60))


def reply(number, step, *args):
    """Answers with the result of step. If the result is None, another thread answers."""
    try:
        value = step(*args)
        if value is None:
            return
        line = "%s ok %s" % (number, value)
    except BaseException as e:  # report every error to the other side
        line = "%s error %s" % (number, repr(e).replace("\n", " "))
    with out:
        sys.stdout.write(line.rstrip(" ") + "\n")
        sys.stdout.flush()


def aside(*args):
    """Runs the step in a new thread and answers with its result."""
    threading.Thread(target=reply, args=args, daemon=True).start()


def check(words):
    """Raises an error if the request is invalid."""
    if len(words) < 2:
        raise ValueError("usage: ID VERB [ARGS]")
    if words[1] not in USAGES:
        raise ValueError("no such verb: " + words[1])
    usage = USAGES[words[1]]
    most = len(usage.split())
    if not most - usage.count("[") <= len(words) - 1 <= most:
        raise ValueError("usage: ID " + usage)


def known(these, number, what):
    if number not in these:
        raise KeyError("no such %s: %s" % (what, number))
    return these[number]


def add(these, one):
    number = str(next(numbers))
    these[number] = one
    return number


class Signs:
    """Records the state changes that kazoo reports for one connection, with the listener that its documentation recommends."""

    WORDS = {KazooState.SUSPENDED: "doubt", KazooState.LOST: "loss", KazooState.CONNECTED: "trust"}

    def __init__(self):
        self.all = []
        self.more = threading.Condition()

    def add(self, state):
        with self.more:
            self.all.append(self.WORDS[state])
            self.more.notify_all()

    def wait_for(self, index):
        with self.more:
            self.more.wait_for(lambda: len(self.all) > index)
            return self.all[index]


class Session:
    def __init__(self, servers, timeout):
        self.client = KazooClient(hosts=servers, timeout=timeout)
        self.signs = Signs()
        self.client.add_listener(self.signs.add)
        self.client.start(timeout=60)

    def end(self):
        self.client.stop()
        self.client.close()
        return ""


class Contender(threading.Thread):
    """A contender: a thread that executes its requests one after the other."""

    def __init__(self, session, kind, path):
        super().__init__(daemon=True)
        if kind not in RECIPES:
            raise ValueError("no such kind: " + kind)
        self.lock = RECIPES[kind](session.client, path)
        self.signs = session.signs
        self.next_sign = 0
        self.work = queue.SimpleQueue()

    def sign(self):
        index, self.next_sign = self.next_sign, self.next_sign + 1
        return self.signs.wait_for(index)

    def run(self):
        while True:
            number, verb = self.work.get()
            reply(number, self.serve, verb)
            if verb == "close":
                return

    def serve(self, verb):
        if verb == "lock":
            if not self.lock.acquire():
                raise RuntimeError("acquire returned False")
            self.next_sign = len(self.signs.all)
            return 0
        if verb == "unlock":
            self.lock.release()
        if verb == "held":
            return str(self.lock.is_acquired).lower()
        return ""


def make_contender(number, kind, path, more=None):
    made = Contender(known(sessions, number, "session"), kind, path)
    made.start()
    return add(contenders, made)


def serve(words, servers, timeout):
    """Executes a request that does not block, or passes a blocking one to another thread."""
    check(words)
    number, verb, args = words[0], words[1], words[2:]
    if verb == "open":
        return aside(number, lambda: add(sessions, Session(servers, timeout)))
    if verb == "contender":
        return make_contender(*args)
    if verb == "end":
        ending = known(sessions, args[0], "session")
        del sessions[args[0]]
        return aside(number, ending.end)
    if verb in ("revoked", "revoke", "leader"):
        raise NotImplementedError("not implemented by the peer for kazoo: " + verb)
    contender = known(contenders, args[0], "contender")
    if verb == "sign":
        return aside(number, contender.sign)
    if verb == "close":
        del contenders[args[0]]
    contender.work.put((number, verb))
    return None


def main():
    servers, timeout = sys.argv[1], int(sys.argv[2]) / 1000.0
    for line in sys.stdin:
        words = line.split() or [""]
        reply(words[0], serve, words, servers, timeout)


main()
