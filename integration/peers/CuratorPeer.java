import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.RetryOneTime;

/**
 * Curator behind a line protocol, for tests in another language: CuratorPeer SERVERS TIMEOUT_MS.
 *
 * <p>A line in is "ID COMMAND ARGS...", a line out "ID ANSWER ARGS...". An ID is a contender: it has a thread of its own
 * (Curator's locks belong to threads) and does its commands one after the other. Commands: acquire KIND PATH [N] (answered
 * "acquired" once held), release ("released"), revoke NODE ("asked"), leader KIND PATH ("leader ID"). Failures answer
 * "error TEXT". KIND is mutex, read, write, semaphore (N leases), latch or selector, whose member ids are the contenders' IDs.
 * A mutex asked to let go by a Revoker says "revoked".
 */
public final class CuratorPeer {
    private final CuratorFramework curator;
    private final Map<String, Contender> contenders = new ConcurrentHashMap<>();

    private CuratorPeer(CuratorFramework curator) {
        this.curator = curator;
    }

    public static void main(String[] args) throws Exception {
        CuratorFramework curator = CuratorFrameworkFactory.newClient(
                args[0], Integer.parseInt(args[1]), 15000, new RetryOneTime(200));
        curator.start();
        if (!curator.blockUntilConnected(60, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no server answers at " + args[0]);
        }
        say("peer", "ready");
        new CuratorPeer(curator).serve();
        curator.close();
        System.exit(0); // a contender blocked in acquire must not keep the process
    }

    private void serve() throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.trim().split(" ");
            contenders.computeIfAbsent(words[0], Contender::new).submit(words);
        }
    }

    private static synchronized void say(String id, String answer) {
        System.out.println(id + " " + answer);
        System.out.flush();
    }

    /** What a recipe gives back once it is held. */
    private interface Held {
        void release() throws Exception;
    }

    private final class Contender {
        private final String id;
        private final ExecutorService thread = Executors.newSingleThreadExecutor();
        private Held held;

        Contender(String id) {
            this.id = id;
        }

        void submit(String[] words) {
            thread.submit(() -> {
                try {
                    say(id, run(words));
                } catch (Throwable e) {
                    say(id, "error " + e);
                }
            });
        }

        private String run(String[] words) throws Exception {
            switch (words[1]) {
                case "acquire":
                    held = acquire(words[2], words[3], words.length > 4 ? Integer.parseInt(words[4]) : 1);
                    return "acquired";
                case "release":
                    held.release();
                    return "released";
                case "revoke":
                    Revoker.attemptRevoke(curator, words[2]);
                    return "asked";
                case "leader":
                    return "leader " + leader(words[2], words[3]);
                default:
                    throw new IllegalArgumentException(words[1]);
            }
        }

        private Held acquire(String kind, String path, int leases) throws Exception {
            switch (kind) {
                case "mutex":
                    InterProcessMutex mutex = new InterProcessMutex(curator, path);
                    mutex.makeRevocable(lock -> say(id, "revoked"));
                    mutex.acquire();
                    return mutex::release;
                case "read":
                    return locked(new InterProcessReadWriteLock(curator, path).readLock());
                case "write":
                    return locked(new InterProcessReadWriteLock(curator, path).writeLock());
                case "semaphore":
                    return permits(new InterProcessSemaphoreV2(curator, path, leases), 1);
                case "latch":
                    LeaderLatch latch = new LeaderLatch(curator, path, id);
                    latch.start();
                    latch.await();
                    return latch::close;
                case "selector":
                    return selected(path);
                default:
                    throw new IllegalArgumentException(kind);
            }
        }

        private String leader(String kind, String path) throws Exception {
            if (kind.equals("latch")) {
                return new LeaderLatch(curator, path).getLeader().getId();
            }
            return new LeaderSelector(curator, path, new LeaderSelectorListenerAdapter() {
                @Override
                public void takeLeadership(CuratorFramework client) {
                }
            }).getLeader().getId();
        }

        private Held locked(InterProcessMutex mutex) throws Exception {
            mutex.acquire();
            return mutex::release;
        }

        private Held permits(InterProcessSemaphoreV2 semaphore, int count) throws Exception {
            Collection<Lease> leases = semaphore.acquire(count);
            return () -> semaphore.returnAll(leases);
        }

        private Held selected(String path) throws Exception {
            CountDownLatch leading = new CountDownLatch(1);
            CountDownLatch done = new CountDownLatch(1);
            CountDownLatch left = new CountDownLatch(1);
            LeaderSelector selector = new LeaderSelector(curator, path, new LeaderSelectorListenerAdapter() {
                @Override
                public void takeLeadership(CuratorFramework client) throws Exception {
                    leading.countDown();
                    done.await();
                    left.countDown();
                }
            });
            selector.setId(id);
            selector.start();
            leading.await();
            return () -> { // no close, it would interrupt the selector's own release
                done.countDown();
                left.await();
            };
        }
    }
}
