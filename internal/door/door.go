// Package door lets packages operate and slots in: they work with a client's sessions, which package zklock does not show.
package door

import (
	"context"
	"errors"
)

// The errors of package slots.
var (
	ErrDone      = errors.New("already done")
	ErrForgotten = errors.New("too old to know whether it was done")
	ErrAhead     = errors.New("in the future")
)

// Slot is what a slots.Slot does.
type Slot[H any] interface {
	Do(ctx context.Context, fn func(ctx context.Context) error) error
	Done(ctx context.Context) (bool, error)
	Mark(ctx context.Context, h H) error
	String() string
}

// Queue is operate.Queue.
type Queue[C any] struct {
	Path       string
	Contenders []C
	Permits    int
	Issued     int64
}

// Operator returns what packages operate and slots need of a *zklock.Client. Package zklock sets it.
var Operator func(client any) any
