package zkcontainer

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Options describe an ensemble. The zero value is one server with short ticks.
// Those that have the names of zktest's options mean the same.
type Options struct {
	// Image is the servers' image. If it is empty, see the package's documentation.
	Image string
	// Tools is an image with iptables and tc, if the servers' image lacks them.
	Tools string
	// Servers is the size of the ensemble, 1 if 0.
	Servers int
	// TickTime is 500 ms if 0: sessions of 1 s to 10 s.
	TickTime time.Duration
	// SyncLimit is for how many ticks a follower may be without its leader, 5 if 0.
	SyncLimit int
	// MinSessionTimeout and MaxSessionTimeout bound the session timeouts, 2 and 20 ticks if 0.
	MinSessionTimeout, MaxSessionTimeout time.Duration
	// Super is a super user, as user:password: a client that authenticates so by
	// the digest scheme passes all access lists. The user must be "super".
	Super string
	// SASL has the users of SASL's DIGEST-MD5 with their passwords.
	SASL map[string]string
	// RequireSASL refuses clients that have not proved a user of SASL.
	RequireSASL bool
	// TLS is the authority of a port for TLS, at Member.Secure: it issues the
	// servers' certificates, and they want one of its from each client. nil means
	// no such port.
	TLS *Authority
	// Config are more lines of zoo.cfg.
	Config []string
	// Files are more files, by their full path inside every container.
	Files map[string][]byte
	// JVMFlags are more flags of the servers' Java.
	JVMFlags string
}

func (o Options) withDefaults() Options {
	o.Servers = max(o.Servers, 1)
	if o.TickTime == 0 {
		o.TickTime = 500 * time.Millisecond
	}
	if o.SyncLimit == 0 {
		o.SyncLimit = 5
	}
	return o
}

func (o Options) complete() (Options, error) {
	o = o.withDefaults()
	if o.Super != "" && !strings.HasPrefix(o.Super, "super:") {
		return o, fmt.Errorf("zkcontainer: ZooKeeper's super user is called super, not %s", o.Super)
	}
	return o, nil
}

// lines are those of zoo.cfg that every member has. What a server with a disk
// promises after a power cut is not what is tested: no fsync.
func (o Options) lines() []string {
	lines := []string{
		fmt.Sprintf("tickTime=%d", o.TickTime.Milliseconds()),
		"initLimit=20",
		fmt.Sprintf("syncLimit=%d", o.SyncLimit),
		"dataDir=/data", "clientPort=2181", "maxClientCnxns=0", "admin.enableServer=false",
		"4lw.commands.whitelist=*", "forceSync=no", "preAllocSize=1024",
		// A member that comes back gets the transactions that it missed, not a snapshot: tests can read its log.
		"snapCount=1000000", "commitLogCount=1000000",
	}
	if o.MinSessionTimeout > 0 {
		lines = append(lines, fmt.Sprintf("minSessionTimeout=%d", o.MinSessionTimeout.Milliseconds()))
	}
	if o.MaxSessionTimeout > 0 {
		lines = append(lines, fmt.Sprintf("maxSessionTimeout=%d", o.MaxSessionTimeout.Milliseconds()))
	}
	if o.TLS != nil {
		lines = append(lines, tlsLines...)
	}
	if o.Servers > 1 {
		for i := range o.Servers {
			lines = append(lines, fmt.Sprintf("server.%d=%s:2888:3888", i+1, memberName(i)))
		}
	}
	return append(lines, o.Config...)
}

func memberName(i int) string { return fmt.Sprintf("zk%d", i+1) }

// jvmFlags are those that the options need, and then the caller's.
func (o Options) jvmFlags() string {
	var flags []string
	if o.Super != "" {
		sum := sha1.Sum([]byte(o.Super))
		flags = append(flags, "-Dzookeeper.DigestAuthenticationProvider.superDigest=super:"+base64.StdEncoding.EncodeToString(sum[:]))
	}
	if len(o.SASL) > 0 {
		flags = append(flags, "-Dfile.encoding=UTF-8", "-Djava.security.auth.login.config="+jaasPath,
			"-Dzookeeper.authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider")
	}
	if o.RequireSASL {
		flags = append(flags, "-Dzookeeper.sessionRequireClientSASLAuth=true")
	}
	if o.JVMFlags != "" {
		flags = append(flags, o.JVMFlags)
	}
	return strings.Join(flags, " ")
}

const jaasPath = "/conf/jaas.conf"

// jaas names the users of SASL, in Java's own format.
func (o Options) jaas() []byte {
	var b strings.Builder
	b.WriteString("Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required")
	for _, user := range slices.Sorted(maps.Keys(o.SASL)) {
		fmt.Fprintf(&b, "\n  user_%s=%q", user, o.SASL[user])
	}
	b.WriteString(";\n};\n")
	return []byte(b.String())
}

// files are those of one member, by their full path.
func (o Options) files(member int) (map[string][]byte, error) {
	files := map[string][]byte{
		"/conf/zoo.cfg": []byte(strings.Join(o.lines(), "\n") + "\n"),
		"/data/myid":    fmt.Appendf(nil, "%d\n", member+1),
	}
	if len(o.SASL) > 0 {
		files[jaasPath] = o.jaas()
	}
	if o.TLS != nil {
		if err := o.TLS.addFiles(files); err != nil {
			return nil, err
		}
	}
	maps.Copy(files, o.Files)
	return files, nil
}
