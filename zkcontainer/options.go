// SPDX-License-Identifier: Apache-2.0

package zkcontainer

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

// Options configure an ensemble. The zero value is a single server with short ticks.
// Options that also exist in zktest have the same meaning there.
type Options struct {
	// Image is the servers' image. If it is empty, the package chooses one as described
	// in its documentation.
	Image string
	// Tools is an image with iptables and tc, if the servers' image lacks them.
	Tools string
	// Servers is the size of the ensemble; 0 means 1.
	Servers int
	// TickTime is ZooKeeper's unit of time; 0 means 500 ms, which allows sessions of 1 s
	// to 10 s.
	TickTime time.Duration
	// SyncLimit is the number of ticks that a follower may be without its leader; 0
	// means 5.
	SyncLimit int
	// MinSessionTimeout and MaxSessionTimeout bound the session timeouts; 0 means 2 and
	// 20 ticks.
	MinSessionTimeout, MaxSessionTimeout time.Duration
	// Super is a super user, in the form user:password. A client that authenticates as
	// this user with the digest scheme passes all ACLs. The user must be "super".
	Super string
	// SASL contains the users of SASL's DIGEST-MD5 with their passwords.
	SASL map[string]string
	// RequireSASL rejects clients that have not authenticated with SASL.
	RequireSASL bool
	// TLS is the certificate authority of an additional TLS port, Member.Secure. It
	// issues the servers' certificates, and clients need a certificate from it too. nil
	// means no TLS port.
	TLS *Authority
	// Config contains additional lines for zoo.cfg.
	Config []string
	// Files are additional files, by full path inside every container.
	Files map[string][]byte
	// JVMFlags are additional flags for the servers' JVM.
	JVMFlags string
	// Container customizes every server's container, after the settings of this package:
	// testcontainers.WithLogger, WithLabels and so on.
	Container []testcontainers.ContainerCustomizer
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
		return o, fmt.Errorf("zkcontainer: the name of ZooKeeper's super user must be super, not %s", o.Super)
	}
	return o, nil
}

// lines returns the lines of zoo.cfg, which are the same for every member. It disables
// fsync, because durability after a power failure is not tested.
func (o Options) lines() []string {
	lines := []string{
		fmt.Sprintf("tickTime=%d", o.TickTime.Milliseconds()),
		"initLimit=20",
		fmt.Sprintf("syncLimit=%d", o.SyncLimit),
		"dataDir=/data", "clientPort=2181", "maxClientCnxns=0", "admin.enableServer=false",
		"4lw.commands.whitelist=*", "forceSync=no", "preAllocSize=1024",
		// A member that rejoins receives the transactions it missed, not a snapshot, so that tests can read its log.
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

// jvmFlags returns the JVM flags that the options require, followed by the caller's.
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

// jaas returns a JAAS configuration with the SASL users.
func (o Options) jaas() []byte {
	var b strings.Builder
	b.WriteString("Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required")
	for _, user := range slices.Sorted(maps.Keys(o.SASL)) {
		fmt.Fprintf(&b, "\n  user_%s=%q", user, o.SASL[user])
	}
	b.WriteString(";\n};\n")
	return []byte(b.String())
}

// files returns a member's files, by full path.
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
