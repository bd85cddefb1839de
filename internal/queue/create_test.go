package queue

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"

	"github.com/zklock-go/zklock/internal/session"
)

func TestTheFateOfACreate(t *testing.T) {
	counting, replacing := &count{}, &contender{}
	for name, c := range map[string]struct {
		of      *contender
		carried bool
		want    fate
	}{
		"listed without it":               {&contender{}, true, wasNotMade},
		"made":                            {&contender{OwnNode: session.OwnNode{Name: "a"}}, true, wasCreated},
		"made after a lost answer":        {&contender{OwnNode: session.OwnNode{Name: "a"}, createErr: zk.ErrConnectionClosed}, true, wasCreated},
		"made, and the session has moved": {&contender{OwnNode: session.OwnNode{Name: "a"}}, false, mayBeLate},
		"lost, and the session has moved": {&contender{createErr: zk.ErrConnectionClosed}, false, mayBeLate},
		"lost":                            {&contender{createErr: zk.ErrConnectionClosed}, true, wasNotMade},
		"counting, others there":          {&contender{counted: counting, createErr: zk.ErrBadVersion}, true, metOthers},
		"counting, no directory":          {&contender{counted: counting, createErr: zk.ErrNoNode}, true, metOthers},
		"counting, lost":                  {&contender{counted: counting, createErr: zk.ErrConnectionClosed}, true, wasNotMade},
		"counting and replacing":          {&contender{counted: counting, replaces: replacing, createErr: zk.ErrNoNode}, true, metOthers},
		"replacing what is gone":          {&contender{replaces: replacing, createErr: zk.ErrNoNode}, true, lacksReplaced},
		"replacing, lost":                 {&contender{replaces: replacing, createErr: zk.ErrConnectionClosed}, true, wasNotMade},
		"no directory":                    {&contender{createErr: zk.ErrNoNode}, true, lacksDir},
		"not allowed":                     {&contender{createErr: zk.ErrNoAuth}, true, wasRefused},
	} {
		assert.Equal(t, c.want, c.of.fate(c.carried), name)
	}
}
