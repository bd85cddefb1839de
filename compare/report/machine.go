// SPDX-License-Identifier: Apache-2.0

package report

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/zklock-go/zklock/compare/servers"
)

// ThisMachine describes this machine, as far as Linux reports it.
func ThisMachine() Machine {
	return Machine{
		CPU: fieldOf("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Memory: fieldOf("/proc/meminfo", "MemTotal"),
		Kernel: word("/proc/sys/kernel/osrelease", 0), System: strings.Trim(fieldOf("/etc/os-release", "PRETTY_NAME"), `"`),
		Go: runtime.Version(), LoadAvg: word("/proc/loadavg", 0),
	}
}

// ThisCommit returns the commit of this repository that is checked out, with "+" if files differ from it.
func ThisCommit() string {
	out, err := exec.Command("git", "describe", "--always", "--exclude=*", "--dirty=+").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// fieldOf returns the value of the first "name: value" or "name=value" line of a file.
func fieldOf(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	for _, line := range strings.Split(string(text), "\n") {
		if i := strings.IndexAny(line, ":="); i > 0 && strings.TrimSpace(line[:i]) == name {
			return strings.TrimSpace(line[i+1:])
		}
	}
	return "unknown"
}

func word(file string, n int) string {
	text, err := os.ReadFile(file)
	words := strings.Fields(string(text))
	if err != nil || len(words) <= n {
		return "unknown"
	}
	return words[n]
}

// Load1 returns the machine's load average of the last minute, or 0 if it is unknown.
func Load1() float64 {
	load, err := strconv.ParseFloat(word("/proc/loadavg", 0), 64)
	if err != nil {
		return 0
	}
	return load
}

// clientModules are the Go clients whose versions the page shows, and the servers they are for.
var clientModules = map[string]string{
	"github.com/jackc/pgx/v5": "PostgreSQL", "github.com/bradfitz/gomemcache": "memcached", "github.com/redis/go-redis/v9": "Redis",
	"github.com/go-redsync/redsync/v4": "Redis", "github.com/redis/rueidis": "Redis", "go.etcd.io/etcd/client/v3": "etcd", "github.com/go-zookeeper/zk": "ZooKeeper",
}

// ClientVersions returns the versions of the client libraries.
func ClientVersions() []servers.Description {
	var all []servers.Description
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if family, ok := clientModules[m.Path]; ok {
				all = append(all, servers.Description{Server: m.Path, Version: m.Version, Durability: "client for " + family})
			}
		}
	}
	for _, p := range []string{"libcurator-recipes-java", "python3-kazoo"} {
		out, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", p).Output()
		if err != nil {
			out = []byte("unknown")
		}
		all = append(all, servers.Description{Server: p, Version: string(out), Durability: "client for ZooKeeper"})
	}
	return all
}
