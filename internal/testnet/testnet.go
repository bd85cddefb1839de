// SPDX-License-Identifier: Apache-2.0

// Package testnet lets this module's tests replace the network of a client that has no dialer of its own.
//
// Such a client resolves the servers' names itself, and asks a server again that does not answer.
package testnet

import (
	"context"
	"net"

	"github.com/go-zookeeper/zk"
)

// Net is a network.
type Net struct {
	Dial    zk.Dialer
	Resolve func(ctx context.Context, host string) ([]string, error)
}

// Hosts returns the hosts of addresses, for a Resolve that knows servers by their addresses.
func Hosts(addresses []string) (hosts []string, err error) {
	for _, address := range addresses {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, host)
	}
	return hosts, nil
}

type key struct{}

// With returns a context that makes n the network of clients created under it.
func With(ctx context.Context, n *Net) context.Context { return context.WithValue(ctx, key{}, n) }

// From returns the network given to With, or nil.
func From(ctx context.Context) *Net {
	n, _ := ctx.Value(key{}).(*Net)
	return n
}
