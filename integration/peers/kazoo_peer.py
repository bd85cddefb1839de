"""kazoo behind a line protocol, for tests in another language: kazoo_peer.py SERVERS TIMEOUT_SECONDS.

The lines are those of CuratorPeer. Kinds: mutex, read and write, each a recipe of kazoo that is told to see the names
of other clients: "-lock-" in a mutex's queue, Curator's "-__READ__" and "-__WRIT__" in a read-write lock's.
"""
import queue
import sys
import threading

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock, ReadLock, WriteLock

out = threading.Lock()


def say(who, answer):
    with out:
        sys.stdout.write("%s %s\n" % (who, answer))
        sys.stdout.flush()


RECIPES = {
    "mutex": lambda client, path: Lock(client, path, extra_lock_patterns=["-lock-"]),
    "read": lambda client, path: ReadLock(client, path, extra_lock_patterns=["-__WRIT__"]),
    "write": lambda client, path: WriteLock(client, path, extra_lock_patterns=["-__WRIT__", "-__READ__"]),
}


class Contender(threading.Thread):
    """One ID: a thread that does its commands one after the other."""

    def __init__(self, client, who):
        super().__init__(daemon=True)
        self.client, self.who, self.todo, self.lock = client, who, queue.Queue(), None
        self.start()

    def run(self):
        while True:
            words = self.todo.get()
            try:
                say(self.who, self.do(words))
            except BaseException as trouble:
                say(self.who, "error %r" % trouble)

    def do(self, words):
        if words[1] == "acquire":
            self.lock = RECIPES[words[2]](self.client, words[3])
            if not self.lock.acquire():
                raise RuntimeError("acquire answered False")
            return "acquired"
        if words[1] == "release":
            self.lock.release()
            return "released"
        raise ValueError(words[1])


def main():
    client = KazooClient(hosts=sys.argv[1], timeout=float(sys.argv[2]))
    client.start(timeout=60)
    say("peer", "ready")
    contenders = {}
    for line in sys.stdin:
        words = line.split()
        if words[0] not in contenders:
            contenders[words[0]] = Contender(client, words[0])
        contenders[words[0]].todo.put(words)
    client.stop()


main()
