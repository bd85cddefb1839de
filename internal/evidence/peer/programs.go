package peer

import "embed"

// The programs that speak the protocol for a library of another language. Each is called with the servers, separated by
// commas, and the session timeout in milliseconds. They have to be run where that library is installed.
const (
	Curator = "CuratorPeer.java"
	Kazoo   = "kazoo_peer.py"
)

// Programs has the sources.
//
//go:embed CuratorPeer.java kazoo_peer.py
var Programs embed.FS
