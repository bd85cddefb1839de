// SPDX-License-Identifier: Apache-2.0

package peer

import "embed"

// The programs that implement the protocol for libraries in other languages. Their arguments are a comma-separated list of servers
// and the session timeout in milliseconds. The library must be installed.
const (
	Curator = "CuratorPeer.java"
	Kazoo   = "kazoo_peer.py"
)

// Programs contains the sources.
//
//go:embed CuratorPeer.java kazoo_peer.py
var Programs embed.FS
