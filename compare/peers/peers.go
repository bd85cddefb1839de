// Package peers holds the programs that lock on our behalf in a process of their own: Curator in Java, kazoo in Python
// (and the comparison itself can be one, for the ways in Go), all with one line protocol on standard input and output.
//
//	request:  ID open | ID locker SESSION NAME | ID lock LOCKER | ID unlock LOCKER | ID held LOCKER | ID close LOCKER | ID end SESSION
//	reply:    ID ok [VALUE] | ID error TEXT
//
// open and locker answer with a number to be used as SESSION and LOCKER; lock answers with the token, 0 for none.
// Requests of different lockers are served side by side.
package peers

import "embed"

// Files holds the sources of the peers in other languages.
//
//go:embed CuratorPeer.java kazoo_peer.py
var Files embed.FS
