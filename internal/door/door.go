// Package door lets packages operate and slots in: they ask servers as a client does, and need more of it than
// package zklock shows.
package door

import (
	"github.com/zklock-go/zklock/internal/queue"
	"github.com/zklock-go/zklock/internal/session"
)

// Client is what a *zklock.Client consists of.
type Client struct {
	*queue.Engine
	Root     string // which is put before every path
	Identity []byte // what its nodes say about it
}

// Hold is what a *zklock.Hold consists of.
type Hold struct {
	Engine *queue.Engine
	Nodes  []*session.OwnNode
	// Unfenced is why the hold cannot guard a transaction, nil if it can.
	Unfenced error
	// Lose ends the hold for a reason that wraps zklock.ErrLost.
	Lose func(why error)
}

// Package zklock sets these.
var (
	ClientOf func(client any) Client // takes a *zklock.Client
	HoldOf   func(hold any) Hold     // takes a *zklock.Hold
)
