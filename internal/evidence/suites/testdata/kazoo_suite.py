"""kazoo's own tests against servers that are somewhere else: kazoo_suite.py CONTROL ADDRESS... [PYTEST OPTION...]

CONTROL is where "stop N" and "start N" are heard, a line each, answered by a line. The cluster of kazoo's harness, which
starts Java processes, is replaced by one that says so there. Left out are reconfig and read-only mode, which zktest does
not serve, and test_invalid_sasl_auth: whether start() says that the login was refused or that time is up depends on which
of kazoo's threads runs first after a refusal that comes at once.
"""
import os
import socket
import sys
import time

import pytest
from kazoo.testing import harness

os.environ.setdefault("ZOOKEEPER_VERSION", "3.8.0")  # some tests are skipped depending on it
control = socket.create_connection(sys.argv[1].rsplit(":", 1)).makefile("rw")


def order(verb, number):
    control.write("%s %d\n" % (verb, number))
    control.flush()
    assert control.readline() == "done\n"


class Server:
    def __init__(self, number, address):
        self.number, self.address, self.running = number, address, True

    @property
    def client_port(self):
        return int(self.address.rsplit(":", 1)[1])

    def run(self):
        order("start", self.number)
        self.running = True

    def stop(self):
        order("stop", self.number)
        self.running = False
        time.sleep(1)  # a Java process takes at least that long to end

    def reset(self):
        pass

    def destroy(self):
        pass


class Cluster(list):
    def start(self):
        for server in self:
            if not server.running:
                server.run()

    def stop(self):
        pass

    terminate = reset = stop


addresses = [word for word in sys.argv[2:] if word[0].isdigit()]
cluster = Cluster(Server(i, address) for i, address in enumerate(addresses))
harness.get_global_cluster = lambda: cluster
options = [word for word in sys.argv[2:] if not word[0].isdigit()]
sys.exit(pytest.main(["-p", "no:cacheprovider", "-v", "-rfEs", "-k", "not Reconfig and not TestReadOnlyMode and not test_invalid_sasl_auth", "--pyargs", "kazoo.tests"] + options))
