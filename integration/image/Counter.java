import java.io.File;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.server.DataNode;
import org.apache.zookeeper.server.DataTree;
import org.apache.zookeeper.server.persistence.FileTxnSnapLog;

/**
 * Writes a server's data directory in which each path has a given number of past child creates. Tests can then reach the
 * end of the sequence counter without two billion requests. Usage: Counter DIR CREATES PATH...
 */
public final class Counter {
    private final DataTree tree = new DataTree();
    private long zxid = 0;

    public static void main(String[] args) throws Exception {
        Counter counter = new Counter();
        for (int i = 2; i < args.length; i++) {
            counter.create(args[i]);
            counter.tree.getNode(args[i]).stat.setCversion(Integer.parseInt(args[1]));
        }
        counter.save(new File(args[0]));
    }

    /** Creates a node and its missing parents. */
    private void create(String path) throws Exception {
        if (path.isEmpty() || tree.getNode(path) != null) {
            return;
        }
        String above = path.substring(0, path.lastIndexOf('/'));
        create(above);
        DataNode parent = tree.getNode(above.isEmpty() ? "/" : above);
        tree.createNode(path, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, 0, parent.stat.getCversion() + 1,
                ++zxid, System.currentTimeMillis(), null);
    }

    private void save(File dir) throws Exception {
        tree.lastProcessedZxid = zxid;
        FileTxnSnapLog log = new FileTxnSnapLog(dir, dir);
        log.save(tree, new ConcurrentHashMap<>(), true);
        log.close();
    }
}
