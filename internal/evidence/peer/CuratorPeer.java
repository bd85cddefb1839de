import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListener;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Serves Curator over the line protocol described in peer.go. Usage: CuratorPeer SERVERS TIMEOUT_MS. */
public final class CuratorPeer {
  private static final List<String> REQUESTS = List.of(
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
      "leader SESSION KIND PATH");

  private static final Map<String, String> USAGES = REQUESTS.stream()
      .collect(Collectors.toMap(usage -> usage.split(" ")[0], usage -> usage));

  private static final PrintStream OUT = new PrintStream(new FileOutputStream(FileDescriptor.out), false);

  private final String servers;
  private final int timeout;
  private final AtomicInteger last = new AtomicInteger();
  private final Map<String, Session> sessions = new ConcurrentHashMap<>();
  private final Map<String, Contender> contenders = new ConcurrentHashMap<>();

  private CuratorPeer(String servers, int timeout) {
    this.servers = servers;
    this.timeout = timeout;
  }

  public static void main(String[] args) throws Exception {
    CuratorPeer peer = new CuratorPeer(args[0], Integer.parseInt(args[1]));
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.trim().split(" ");
      reply(words[0], () -> peer.serve(words));
    }
    System.exit(0); // threads of waiting contenders must not keep the process alive
  }

  // The line protocol.

  private interface Step {
    /** Returns the value of the answer, or null if another thread answers. */
    String run() throws Exception;
  }

  private static void reply(String id, Step step) {
    String line;
    try {
      String value = step.run();
      if (value == null) {
        return;
      }
      line = value.isEmpty() ? id + " ok" : id + " ok " + value;
    } catch (Throwable t) {
      line = id + " error " + String.valueOf(t).replace('\n', ' ');
    }
    synchronized (OUT) {
      OUT.println(line);
      OUT.flush();
    }
  }

  /** Runs the step in a new thread and answers with its result. */
  private static String aside(String id, Step step) {
    daemon(() -> reply(id, step), 0).start();
    return null;
  }

  private static Thread daemon(Runnable run, long stack) {
    Thread t = new Thread(null, run, "peer", stack);
    t.setDaemon(true);
    return t;
  }

  private static void check(String[] words) {
    if (words.length < 2) {
      throw new IllegalArgumentException("usage: ID VERB [ARGS]");
    }
    String usage = USAGES.get(words[1]);
    if (usage == null) {
      throw new IllegalArgumentException("no such verb: " + words[1]);
    }
    int most = usage.split(" ").length;
    int least = usage.endsWith("]") ? most - 1 : most;
    if (words.length - 1 < least || words.length - 1 > most) {
      throw new IllegalArgumentException("usage: ID " + usage);
    }
  }

  /** Executes a request that does not block, or passes a blocking one to another thread. */
  private String serve(String[] words) {
    check(words);
    switch (words[1]) {
      case "open":
        return aside(words[0], this::open);
      case "end":
      case "contender":
      case "revoke":
      case "leader":
        return serve(known(sessions, words[2], "session"), words);
      default:
        return serve(known(contenders, words[2], "contender"), words);
    }
  }

  private String serve(Session session, String[] words) {
    switch (words[1]) {
      case "end":
        sessions.remove(words[2]);
        return aside(words[0], session::end);
      case "contender":
        Contender made = new Contender(session, words[3], words[4], words.length > 5 ? words[5] : null);
        return add(contenders, made);
      case "revoke":
        return aside(words[0], () -> session.revoke(words[3]));
      default: // leader
        return aside(words[0], () -> session.leader(words[3], words[4]));
    }
  }

  private String serve(Contender contender, String[] words) {
    switch (words[1]) {
      case "sign":
        return aside(words[0], contender::sign);
      case "revoked":
        return aside(words[0], contender::revoked);
      case "close":
        contenders.remove(words[2]);
        return contender.close();
      default:
        contender.thread.execute(() -> reply(words[0], () -> contender.serve(words[1])));
        return null;
    }
  }

  private static <T> T known(Map<String, T> all, String number, String what) {
    T one = all.get(number);
    if (one == null) {
      throw new NoSuchElementException("no such " + what + ": " + number);
    }
    return one;
  }

  private <T> String add(Map<String, T> all, T one) {
    String number = String.valueOf(last.incrementAndGet());
    all.put(number, one);
    return number;
  }

  private String open() throws Exception {
    CuratorFramework curator = CuratorFrameworkFactory.newClient(servers, timeout, 15000, new ExponentialBackoffRetry(100, 5));
    Session session = new Session(curator);
    curator.getConnectionStateListenable().addListener((c, state) -> session.signs.add(state));
    curator.start();
    if (!curator.blockUntilConnected(60, TimeUnit.SECONDS)) {
      curator.close();
      throw new IllegalStateException("no session from " + servers);
    }
    return add(sessions, session);
  }

  /** Records the state changes that Curator reports for one connection, with a ConnectionStateListener, as its documentation recommends. */
  private static final class Signs {
    private final List<String> all = new ArrayList<>();

    synchronized void add(ConnectionState state) {
      if (state == ConnectionState.SUSPENDED) {
        all.add("doubt");
      } else if (state == ConnectionState.LOST) {
        all.add("loss");
      } else {
        all.add("trust");
      }
      notifyAll();
    }

    synchronized int count() {
      return all.size();
    }

    synchronized String await(int index) throws InterruptedException {
      while (all.size() <= index) {
        wait();
      }
      return all.get(index);
    }
  }

  private static final class Session {
    final CuratorFramework curator;
    final Signs signs = new Signs();

    Session(CuratorFramework curator) {
      this.curator = curator;
    }

    /** Closes the client. Closing sometimes hangs. */
    String end() throws InterruptedException {
      Thread closing = daemon(curator::close, 0);
      closing.start();
      closing.join(3000);
      return "";
    }

    String revoke(String node) throws Exception {
      Revoker.attemptRevoke(curator, node);
      return "";
    }

    String leader(String kind, String path) throws Exception {
      switch (kind) {
        case "latch":
          return new LeaderLatch(curator, path).getLeader().getId();
        case "selector":
          return new LeaderSelector(curator, path, leads(() -> { })).getLeader().getId();
        default:
          throw new IllegalArgumentException("kind has no leader: " + kind);
      }
    }
  }

  /** A recipe as one contender uses it. Acquiring returns the function that releases. */
  private interface Recipe {
    Held take() throws Exception;
  }

  private interface Held {
    void release() throws Exception;
  }

  /** A contender and its thread: Curator identifies the owner of a mutex by its thread. */
  private static final class Contender {
    final ExecutorService thread = Executors.newSingleThreadExecutor(r -> daemon(r, 256 * 1024));
    private final CuratorFramework curator;
    private final Signs signs;
    private final AtomicInteger nextSign = new AtomicInteger();
    private final CountDownLatch revoked = new CountDownLatch(1);
    private final Recipe recipe;
    private InterProcessMutex mutex; // null if the recipe is not a mutex
    private Held held;

    Contender(Session session, String kind, String path, String more) {
      curator = session.curator;
      signs = session.signs;
      recipe = recipe(kind, path, more);
    }

    String sign() throws InterruptedException {
      return signs.await(nextSign.getAndIncrement());
    }

    String revoked() throws InterruptedException {
      revoked.await();
      return "";
    }

    String close() {
      thread.shutdown();
      return "";
    }

    /** Runs on the contender's thread. */
    String serve(String verb) throws Exception {
      switch (verb) {
        case "lock":
          held = recipe.take();
          nextSign.set(signs.count());
          return "0";
        case "unlock":
          held.release();
          return "";
        default: // held
          if (mutex == null) {
            throw new UnsupportedOperationException("only a mutex reports whether it is held");
          }
          return String.valueOf(mutex.isOwnedByCurrentThread());
      }
    }

    private Recipe recipe(String kind, String path, String more) {
      switch (kind) {
        case "plain":
          return mutex(new InterProcessMutex(curator, path));
        case "mutex":
          InterProcessMutex revocable = new InterProcessMutex(curator, path);
          revocable.makeRevocable(lock -> revoked.countDown());
          return mutex(revocable);
        case "read":
          return mutex(new InterProcessReadWriteLock(curator, path).readLock());
        case "write":
          return mutex(new InterProcessReadWriteLock(curator, path).writeLock());
        case "semaphore":
          return semaphore(new InterProcessSemaphoreV2(curator, path, Integer.parseInt(needed(more))));
        case "latch":
          return latch(path, needed(more));
        case "selector":
          return selector(path, needed(more));
        default:
          throw new IllegalArgumentException("no such kind: " + kind);
      }
    }

    private static String needed(String more) {
      if (more == null) {
        throw new IllegalArgumentException("kind requires MORE");
      }
      return more;
    }

    private Recipe mutex(InterProcessMutex mutex) {
      this.mutex = mutex;
      return () -> {
        mutex.acquire();
        return mutex::release;
      };
    }

    private static Recipe semaphore(InterProcessSemaphoreV2 semaphore) {
      return () -> {
        Lease lease = semaphore.acquire();
        return () -> semaphore.returnLease(lease);
      };
    }

    /** Creates a latch for each acquire: a closed latch cannot be started again. */
    private Recipe latch(String path, String member) {
      return () -> {
        LeaderLatch latch = new LeaderLatch(curator, path, member);
        latch.start();
        latch.await();
        return latch::close;
      };
    }

    /** A selector leads as long as its listener runs. */
    private Recipe selector(String path, String member) {
      return () -> {
        CountDownLatch leading = new CountDownLatch(1);
        CountDownLatch done = new CountDownLatch(1);
        CountDownLatch left = new CountDownLatch(1);
        LeaderSelector selector = new LeaderSelector(curator, path, leads(() -> {
          leading.countDown();
          done.await();
          left.countDown();
        }));
        selector.setId(member);
        selector.start();
        leading.await();
        return () -> { // do not close the selector: that would interrupt its own release
          done.countDown();
          left.await();
        };
      };
    }
  }

  private interface Turn {
    void run() throws Exception;
  }

  private static LeaderSelectorListener leads(Turn turn) {
    return new LeaderSelectorListenerAdapter() {
      @Override
      public void takeLeadership(CuratorFramework client) throws Exception {
        turn.run();
      }
    };
  }
}
