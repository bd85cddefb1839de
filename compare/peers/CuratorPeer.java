import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Curator's InterProcessMutex behind the line protocol of peers.go. A mutex belongs to a thread, so each locker has one. */
public final class CuratorPeer {
  private static final PrintStream OUT = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false);
  private static final Map<Integer, CuratorFramework> SESSIONS = new ConcurrentHashMap<>();
  private static final Map<Integer, Locker> LOCKERS = new ConcurrentHashMap<>();
  private static final AtomicInteger NEXT = new AtomicInteger();

  private static final class Locker {
    final InterProcessMutex mutex;
    final ExecutorService thread;

    Locker(InterProcessMutex mutex) {
      this.mutex = mutex;
      this.thread = Executors.newSingleThreadExecutor(r -> {
        Thread t = new Thread(null, r, "locker", 256 * 1024);
        t.setDaemon(true);
        return t;
      });
    }
  }

  private interface Step {
    String run() throws Exception;
  }

  private static void reply(String id, Step step) {
    String line;
    try {
      line = id + " ok " + step.run();
    } catch (Throwable t) {
      line = id + " error " + String.valueOf(t).replace('\n', ' ');
    }
    synchronized (OUT) {
      OUT.println(line);
      OUT.flush();
    }
  }

  public static void main(String[] args) throws Exception {
    String servers = args[0];
    int timeout = Integer.parseInt(args[1]);
    String root = args[2];
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.split(" ");
      String id = words[0];
      if (words[1].equals("open")) {
        new Thread(() -> reply(id, () -> open(servers, timeout))).start();
        continue;
      }
      int n = Integer.parseInt(words[2]);
      if (words[1].equals("locker")) {
        reply(id, () -> locker(n, root + "/" + words[3]));
        continue;
      }
      if (words[1].equals("end")) {
        new Thread(() -> reply(id, () -> end(n))).start();
        continue;
      }
      Locker l = LOCKERS.get(n);
      l.thread.execute(() -> reply(id, () -> serve(words[1], n, l)));
    }
    System.exit(0);
  }

  private static String open(String servers, int timeout) throws Exception {
    CuratorFramework client = CuratorFrameworkFactory.newClient(servers, timeout, 15000, new ExponentialBackoffRetry(100, 5));
    client.start();
    if (!client.blockUntilConnected(20, TimeUnit.SECONDS)) {
      client.close();
      throw new IllegalStateException("no session");
    }
    int n = NEXT.incrementAndGet();
    SESSIONS.put(n, client);
    return String.valueOf(n);
  }

  private static String locker(int session, String path) {
    int n = NEXT.incrementAndGet();
    LOCKERS.put(n, new Locker(new InterProcessMutex(SESSIONS.get(session), path)));
    return String.valueOf(n);
  }

  /** Closing has been seen to hang, and nothing that is measured depends on it. */
  private static String end(int session) throws InterruptedException {
    Thread closing = new Thread(SESSIONS.remove(session)::close);
    closing.setDaemon(true);
    closing.start();
    closing.join(3000);
    return "";
  }

  private static String serve(String verb, int n, Locker l) throws Exception {
    switch (verb) {
      case "lock":
        l.mutex.acquire();
        return "0";
      case "unlock":
        l.mutex.release();
        return "";
      case "held":
        return String.valueOf(l.mutex.isOwnedByCurrentThread());
      case "close":
        LOCKERS.remove(n);
        l.thread.shutdown();
        return "";
      default:
        throw new IllegalArgumentException(verb);
    }
  }
}
