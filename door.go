package zklock

import "github.com/zklock-go/zklock/internal/door"

func init() {
	door.ClientOf = func(client any) door.Client {
		c := owner{client.(*Client)}.c()
		return door.Client{Engine: c.engine, Root: c.root, Identity: c.identity}
	}
	door.HoldOf = func(hold any) door.Hold {
		g := hold.(*Hold).of()
		d := door.Hold{Engine: g.c, Nodes: g.nodes, Lose: g.lose}
		if g.unfenced {
			d.Unfenced = errUnfenced
		}
		return d
	}
}
