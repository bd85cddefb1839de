// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/operate"
)

// onlook inspects one queue after the other, as an operator does, and sometimes asks a contender to release, until no new operation
// may start.
func (f *fleet) onlook(r *rand.Rand) {
	defer f.wg.Done()
	p := &process{f: f, name: "onlooker", alive: f.end}
	var client *zklock.Client
	for p.rest(around(r, f.plan.Hold)) {
		if client == nil {
			// A connection whose login is rejected leaves a session. Many of these would delay the expiry of other sessions by
			// more than P2 assumes.
			p.rest(f.plan.shortest())
			client, _ = f.operator(f.end, p.name, f.plan.shortest())
			continue
		}
		l := f.plan.Locks[r.IntN(len(f.plan.Locks))].one()
		if shown := p.look(client, l); len(shown) > 0 && r.IntN(4) == 0 {
			p.ask(client, l, shown[r.IntN(len(shown))])
		}
	}
	if client != nil {
		client.Close()
	}
}

// operator connects a client for an operator.
func (f *fleet) operator(ctx context.Context, name string, session time.Duration) (*zklock.Client, error) {
	return zklock.Connect(ctx, f.srv.Addrs(), &zklock.Options{
		SessionTimeout: session, TickTime: f.plan.Tick, Label: name, Dialer: f.srv.DialFrom(name), Auth: f.plan.credentials(), ACL: f.plan.acl(),
	})
}

// look inspects a queue, and records and returns the contenders shown. For a semaphore, it considers only the holders.
func (p *process) look(client *zklock.Client, l Lock) []zklock.Contender {
	op := p.f.rec.Begin(history.Op{Kind: history.Inspect, Recipe: l.Recipe, Path: l.Path, Client: p.name})
	q, err := operate.Inspect(p.alive, client, l.Path)
	if err != nil {
		op.Finished(history.Failed, err)
		if p.alive.Err() == nil {
			p.f.report("P8", l.Path, fmt.Sprintf("%s: inspect failed: %v", p.name, err))
		}
		return nil
	}
	holding, _ := apart(q.Contenders)
	var token int64
	if len(holding) > 0 {
		token = holding[0].Token
	}
	shown := q.Contenders
	if l.Recipe == history.Semaphore {
		shown = holding // for waiters, Inspect shows the node in the other directory
	}
	op.Showed(nodesOf(shown), nodesOf(holding), token)
	return shown
}

// ask asks a contender to release. The contender behaves as planned: it need not comply.
func (p *process) ask(client *zklock.Client, l Lock, who zklock.Contender) {
	op := p.f.rec.Begin(history.Op{Kind: history.Ask, Recipe: l.Recipe, Path: l.Path, Client: p.name, Node: who.Node})
	err := operate.Revoke(p.alive, client, who)
	switch {
	case err == nil:
		op.Finished(history.Granted, nil)
	case errors.Is(err, zklock.ErrNotHeld):
		op.Finished(history.Refused, err)
	default:
		op.Finished(history.Failed, err)
		if p.alive.Err() == nil {
			p.f.report("P8", l.Path, fmt.Sprintf("%s: revoke failed: %v", p.name, err))
		}
	}
}

// apart divides contenders into holders and waiters.
func apart(all []zklock.Contender) (holding, waiting []zklock.Contender) {
	for _, c := range all {
		if c.Holds {
			holding = append(holding, c)
		} else {
			waiting = append(waiting, c)
		}
	}
	return holding, waiting
}

func nodesOf(all []zklock.Contender) (nodes []string) {
	for _, c := range all {
		nodes = append(nodes, c.Node)
	}
	return nodes
}
