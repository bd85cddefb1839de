// SPDX-License-Identifier: Apache-2.0

// Package testnet lets this module's tests replace the network of a client that has no dialer of its own.
//
// Such a client resolves the servers' names itself, and asks a server again that does not answer.
package testnet

import (
	"context"

	"github.com/go-zookeeper/zk"
)

// Net is a network.
type Net struct {
	Dial    zk.Dialer
	Resolve func(ctx context.Context, host string) ([]string, error)
}

type key struct{}

// With returns a context that makes n the network of clients created under it.
func With(ctx context.Context, n *Net) context.Context { return context.WithValue(ctx, key{}, n) }

// From returns the network given to With, or nil.
func From(ctx context.Context) *Net {
	n, _ := ctx.Value(key{}).(*Net)
	return n
}
