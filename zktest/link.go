package zktest

import "maps"

// reset makes the link a new connection, as slow as the old one.
func (l *link) reset() {
	down, up, holds := l.down.delay, l.up.delay, l.holds
	*l = link{holds: holds}
	l.down.delay, l.up.delay = down, up
}

// inLog lists the transactions on the stream that the follower has logged.
func (l *link) inLog(zxid int64) []*txn {
	var list []*txn
	for _, f := range l.down.frames {
		if t := f.frame.txn; t != nil && t.zxid <= zxid {
			list = append(list, t)
		}
	}
	return list
}

// newest is the zxid of the last transaction on the stream, 0 for none.
func (l *link) newest() int64 {
	for i := len(l.down.frames) - 1; i >= 0; i-- {
		if t := l.down.frames[i].frame.txn; t != nil {
			return t.zxid
		}
	}
	return 0
}

// usurped makes the leader a former one that does not know it.
func (s *Server) usurped() *former {
	f := &former{sessions: maps.Clone(s.sessions), proposed: len(s.outstanding) > 0}
	for id, sess := range f.sessions {
		known := *sess
		f.sessions[id] = &known
	}
	return f
}
