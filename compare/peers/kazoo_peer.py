"""kazoo's Lock behind the line protocol of peers.go. A lock belongs to a thread, so each locker has one."""

import logging
import queue
import sys
import threading

from kazoo.client import KazooClient

logging.disable(logging.CRITICAL)
threading.stack_size(256 * 1024)

out = threading.Lock()
sessions = {}
lockers = {}
numbers = iter(range(1, 1 << 60))


def reply(number, step):
    try:
        line = "%s ok %s\n" % (number, step())
    except BaseException as e:  # the other side must hear of everything
        line = "%s error %s\n" % (number, repr(e).replace("\n", " "))
    with out:
        sys.stdout.write(line)
        sys.stdout.flush()


def open_session(servers, timeout):
    client = KazooClient(hosts=servers, timeout=timeout)
    client.start(timeout=20)
    number = next(numbers)
    sessions[number] = client
    return number


def end_session(number):
    client = sessions.pop(number)
    client.stop()
    client.close()
    return ""


class Locker(threading.Thread):
    def __init__(self, lock):
        super().__init__(daemon=True)
        self.lock = lock
        self.work = queue.SimpleQueue()

    def run(self):
        while True:
            number, verb = self.work.get()
            if verb == "close":
                reply(number, lambda: "")
                return
            reply(number, lambda: self.serve(verb))

    def serve(self, verb):
        if verb == "lock":
            self.lock.acquire()
            return 0
        if verb == "unlock":
            self.lock.release()
            return ""
        if verb == "held":
            return str(self.lock.is_acquired).lower()
        raise ValueError(verb)


def make_locker(session, path):
    locker = Locker(sessions[session].Lock(path))
    locker.start()
    number = next(numbers)
    lockers[number] = locker
    return number


def main():
    servers, timeout, root = sys.argv[1], int(sys.argv[2]) / 1000.0, sys.argv[3]
    for line in sys.stdin:
        words = line.split()
        number, verb = words[0], words[1]
        if verb == "open":
            threading.Thread(target=reply, args=(number, lambda: open_session(servers, timeout)), daemon=True).start()
        elif verb == "end":
            n = int(words[2])
            threading.Thread(target=reply, args=(number, lambda n=n: end_session(n)), daemon=True).start()
        elif verb == "locker":
            reply(number, lambda: make_locker(int(words[2]), root + "/" + words[3]))
        else:
            lockers[int(words[2])].work.put((number, verb))


main()
