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
		"listed without it":               {creation{}, false, true, fateNotCreated},
		"made":                            {creation{}, true, true, fateCreated},
		"made after a lost answer":        {creation{err: zk.ErrConnectionClosed}, true, true, fateCreated},
		"made, and the session has moved": {creation{}, true, false, fateLate},
		"lost, and the session has moved": {creation{err: zk.ErrConnectionClosed}, false, false, fateLate},
		"lost":                            {creation{err: zk.ErrConnectionClosed}, false, true, fateNotCreated},
		"counting, others there":          {creation{expected: counting, err: zk.ErrBadVersion}, false, true, fateNotAlone},
		"counting, no directory":          {creation{expected: counting, err: zk.ErrNoNode}, false, true, fateNotAlone},
		"counting, lost":                  {creation{expected: counting, err: zk.ErrConnectionClosed}, false, true, fateNotCreated},
		"counting and replacing":          {creation{expected: counting, replaces: replacing, err: zk.ErrNoNode}, false, true, fateNotAlone},
		"replacing what is gone":          {creation{replaces: replacing, err: zk.ErrNoNode}, false, true, fateReplacedGone},
		"replacing, lost":                 {creation{replaces: replacing, err: zk.ErrConnectionClosed}, false, true, fateNotCreated},
		"no directory":                    {creation{err: zk.ErrNoNode}, false, true, fateNoDirectory},
		"not allowed":                     {creation{err: zk.ErrNoAuth}, false, true, fateRefused},
	} {
		assert.Equal(t, c.want, c.of.fate(c.made, c.carried), name)
	}
}
