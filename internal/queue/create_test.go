// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
)

//zklock:promise P5.1
func TestTheFateOfACreate(t *testing.T) {
	counting, replacing := &lastAlone{}, &contender{}
	for name, c := range map[string]struct {
		of      creation
		made    bool
		carried bool
		want    fate
	}{
		"listed without it":               {creation{}, false, true, wasNotMade},
		"made":                            {creation{}, true, true, wasCreated},
		"made after a lost answer":        {creation{err: zk.ErrConnectionClosed}, true, true, wasCreated},
		"made, and the session has moved": {creation{}, true, false, mayBeLate},
		"lost, and the session has moved": {creation{err: zk.ErrConnectionClosed}, false, false, mayBeLate},
		"lost":                            {creation{err: zk.ErrConnectionClosed}, false, true, wasNotMade},
		"counting, others there":          {creation{expected: counting, err: zk.ErrBadVersion}, false, true, metOthers},
		"counting, no directory":          {creation{expected: counting, err: zk.ErrNoNode}, false, true, metOthers},
		"counting, lost":                  {creation{expected: counting, err: zk.ErrConnectionClosed}, false, true, wasNotMade},
		"counting and replacing":          {creation{expected: counting, replaces: replacing, err: zk.ErrNoNode}, false, true, metOthers},
		"replacing what is gone":          {creation{replaces: replacing, err: zk.ErrNoNode}, false, true, lacksReplaced},
		"replacing, lost":                 {creation{replaces: replacing, err: zk.ErrConnectionClosed}, false, true, wasNotMade},
		"no directory":                    {creation{err: zk.ErrNoNode}, false, true, lacksDir},
		"not allowed":                     {creation{err: zk.ErrNoAuth}, false, true, wasRefused},
	} {
		assert.Equal(t, c.want, c.of.fate(c.made, c.carried), name)
	}
}
