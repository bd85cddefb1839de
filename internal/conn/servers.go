// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// defaultPort is ZooKeeper's port for clients.
const defaultPort = "2181"

// ParseServers parses addresses in the usual ZooKeeper notation. Each element is host:port, or
// several of these separated by commas. The last one may be followed by the path of a chroot, below
// which all other paths are: zk1:2181,zk2:2181/app. The default port is 2181. The chroot's path is
// returned unchanged.
func ParseServers(list []string) (servers []string, chroot string, err error) {
	for i, element := range list {
		addresses, below, _ := strings.Cut(element, "/")
		switch {
		case strings.Contains(element, "://"):
			return nil, "", fmt.Errorf("server %q: use host:port without %q", element, element[:strings.Index(element, "://")+3])
		case i > 0 && below != chroot && chroot != "":
			return nil, "", fmt.Errorf("servers have different chroots: %q and %q", "/"+chroot, "/"+below)
		case strings.Contains(below, ","):
			return nil, "", fmt.Errorf("server %q: the chroot must follow the last address", element)
		}
		chroot = below
		for address := range strings.SplitSeq(addresses, ",") {
			server, err := parseServer(strings.TrimSpace(address))
			if err != nil {
				return nil, "", err
			}
			servers = append(servers, server)
		}
	}
	if len(servers) == 0 {
		return nil, "", errors.New("no servers given")
	}
	if chroot == "" {
		return servers, "", nil
	}
	return servers, "/" + chroot, nil
}

// parseServer returns one address with its port.
func parseServer(address string) (string, error) {
	bad := func(what string) (string, error) {
		return "", fmt.Errorf("server %q %s", address, what)
	}
	if address == "" {
		return bad("is empty")
	}
	if strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '@' || r == '?' || r == '#' }) {
		return bad("is not host:port")
	}
	name, bracketed := address, address[0] == '[' && address[len(address)-1] == ']'
	if bracketed {
		name = address[1 : len(address)-1]
	}
	if name == "" || !strings.Contains(address, ":") && strings.ContainsAny(name, "[]") {
		return bad("is not host:port")
	}
	if ip := net.ParseIP(name); ip != nil || !strings.Contains(address, ":") {
		if ip != nil && ip.To4() == nil && !bracketed {
			return bad("is an IPv6 address: use [address]:port")
		}
		return net.JoinHostPort(name, defaultPort), nil
	}
	host, port, err := net.SplitHostPort(address)
	switch n, notNumber := strconv.Atoi(port); {
	case err != nil:
		return bad("is not host:port")
	case host == "":
		return bad("has no host")
	case notNumber != nil || n < 1 || n > 65535:
		return bad("has a port outside 1 to 65535")
	}
	return address, nil
}
