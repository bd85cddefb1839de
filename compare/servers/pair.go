// SPDX-License-Identifier: Apache-2.0

package servers

import "context"

// Pair is a primary and its asynchronous standby, behind one address that Promote moves.
type Pair struct {
	Primary, Standby *Process
	Front            *Switch                     // between the clients and the primary
	link             *Switch                     // between the standby and the primary
	inSync           func(context.Context) error // returns an error unless the standby has all that the primary has written
	promote          func(context.Context) error // makes the standby a primary
}

// newPair completes a pair whose servers run, and waits until they are in sync.
func (s *Set) newPair(ctx context.Context, p *Pair) (_ *Pair, err error) {
	p.Front, err = s.NewSwitch(p.Primary.Addr)
	if err != nil {
		return nil, err
	}
	return p, p.settle(ctx)
}

func (p *Pair) settle(ctx context.Context) error {
	return eventually(ctx, func() error { return p.inSync(ctx) })
}

// Lag waits until the standby is in sync and then cuts its link, so that later writes are acknowledged but not replicated.
func (p *Pair) Lag(ctx context.Context) error {
	if err := p.settle(ctx); err != nil {
		return err
	}
	p.link.Cut()
	return nil
}

// Promote kills the primary, makes the standby the primary and moves the clients' address to it.
func (p *Pair) Promote(ctx context.Context) error {
	p.Primary.Kill()
	if err := p.promote(ctx); err != nil {
		return err
	}
	p.Front.Point(p.Standby.Addr)
	return nil
}
