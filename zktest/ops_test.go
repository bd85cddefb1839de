// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	joe  = identity{"digest", "joe:hash"}
	root = []ACL{{PermAll, "world", "anyone"}}
)

// viewOf is what one transaction sees of a tree with a few nodes.
func viewOf(t *testing.T, multi bool) *view {
	g := newGrown()
	g.make("/d", change{})
	g.make("/d/x", change{})
	g.make("/e", change{node: ephemeral, owner: 7})
	g.make("/secret", change{}).acl = []ACL{{PermRead | PermWrite, "digest", joe.id}}
	opts := Options{}
	require.NoError(t, opts.complete())
	v := &view{t: g.tree, opts: &opts}
	if multi {
		v.pending = map[string]record{}
	}
	return v
}

func create(path string) *call {
	return &call{op: OpCreate, path: path, acl: root, version: -1, ttl: -1}
}

func TestEachCheckHasItsCode(t *testing.T) {
	for name, c := range map[string]struct {
		call *call
		code int32
	}{
		"create":                            {create("/n"), CodeOK},
		"create below a missing node":       {create("/no/n"), CodeNoNode},
		"create what is there":              {create("/d"), CodeNodeExists},
		"create below an ephemeral":         {create("/e/n"), CodeNoChildrenForEphemerals},
		"create at a bad path":              {create("/d/"), CodeBadArguments},
		"create without an access list":     {&call{op: OpCreate, path: "/n", ttl: -1}, CodeInvalidACL},
		"create where only joe may":         {create("/secret/n"), CodeNoAuth},
		"create with unknown flags":         {&call{op: OpCreate, path: "/n", acl: root, flags: 9, ttl: -1}, CodeBadArguments},
		"create a TTL node without a TTL":   {&call{op: OpCreateTTL, path: "/n", acl: root, flags: flagTTL, ttl: 0}, CodeBadArguments},
		"create a quota":                    {create("/zookeeper/quota/d"), CodeUnimplemented},
		"delete":                            {&call{op: OpDelete, path: "/d/x", version: -1}, CodeOK},
		"delete with the right version":     {&call{op: OpDelete, path: "/d/x", version: 0}, CodeOK},
		"delete with another version":       {&call{op: OpDelete, path: "/d/x", version: 1}, CodeBadVersion},
		"delete a parent":                   {&call{op: OpDelete, path: "/d", version: -1}, CodeNotEmpty},
		"delete nothing":                    {&call{op: OpDelete, path: "/no", version: -1}, CodeNoNode},
		"delete the root":                   {&call{op: OpDelete, path: "/", version: -1}, CodeBadArguments},
		"the reaper deletes an ephemeral":   {&call{op: OpDeleteContainer, path: "/e", version: -1}, CodeBadVersion},
		"set":                               {&call{op: OpSetData, path: "/d", version: 0}, CodeOK},
		"set with another version":          {&call{op: OpSetData, path: "/d", version: 3}, CodeBadVersion},
		"set where only joe may":            {&call{op: OpSetData, path: "/secret", version: -1}, CodeNoAuth},
		"set an access list":                {&call{op: OpSetACL, path: "/d", acl: root, version: 0}, CodeOK},
		"set an access list of another age": {&call{op: OpSetACL, path: "/d", acl: root, version: 1}, CodeBadVersion},
		"set an empty access list":          {&call{op: OpSetACL, path: "/d", version: -1}, CodeInvalidACL},
		"check":                             {&call{op: OpCheck, path: "/d", version: 0}, CodeOK},
		"check another version":             {&call{op: OpCheck, path: "/d", version: 1}, CodeBadVersion},
		"check nothing":                     {&call{op: OpCheck, path: "/no", version: -1}, CodeNoNode},
		"a request that is no write":        {&call{op: OpGetData, path: "/d"}, CodeUnimplemented},
	} {
		_, code := viewOf(t, false).prepare(c.call, 7, nil)
		assert.Equal(t, c.code, code, name)
	}
}

func TestTheStepsOfAMultiSeeTheStepsBefore(t *testing.T) {
	v := viewOf(t, true)
	prepare := func(r *call) (change, int32) { return v.prepare(r, 7, nil) }
	sequential := create("/n/x-")
	sequential.flags = flagEphemeralSequential

	_, code := prepare(create("/n"))
	require.Equal(t, CodeOK, code)
	for i, want := range []string{"/n/x-0000000000", "/n/x-0000000001"} {
		ch, code := prepare(sequential)
		require.Equal(t, CodeOK, code)
		assert.Equal(t, change{kind: changeCreate, path: want, acl: root, node: ephemeral, owner: 7, creates: int32(i + 1)}, ch)
	}
	_, code = prepare(&call{op: OpDelete, path: "/n", version: -1})
	assert.Equal(t, CodeNotEmpty, code)
	ch, code := prepare(&call{op: OpSetData, path: "/n", version: 0})
	assert.Equal(t, CodeOK, code)
	assert.Equal(t, int32(1), ch.version)
	_, code = prepare(&call{op: OpCheck, path: "/n", version: 0})
	assert.Equal(t, CodeBadVersion, code)
	_, code = prepare(&call{op: OpDelete, path: "/d/x", version: -1})
	assert.Equal(t, CodeOK, code)
	_, code = prepare(&call{op: OpDelete, path: "/d", version: -1})
	assert.Equal(t, CodeOK, code, "it is empty by now")
	_, code = prepare(create("/d/y"))
	assert.Equal(t, CodeNoNode, code)
	assert.NotNil(t, v.t.get("/d/x"), "nothing is done yet")
}

func TestTheKindOfANodeIsThatOfTheRequest(t *testing.T) {
	for name, c := range map[string]struct {
		call call
		want createMode
		ok   bool
	}{
		"persistent":            {call{op: OpCreate, ttl: -1}, createMode{}, true},
		"sequential":            {call{op: OpCreate, flags: flagSequential, ttl: -1}, createMode{sequential: true}, true},
		"ephemeral":             {call{op: OpCreate2, flags: flagEphemeral, ttl: -1}, createMode{kind: ephemeral}, true},
		"container":             {call{op: OpCreateContainer, flags: flagContainer, ttl: -1}, createMode{kind: container}, true},
		"a container's flag":    {call{op: OpCreate, flags: flagContainer, ttl: -1}, createMode{}, true},
		"TTL":                   {call{op: OpCreateTTL, flags: flagTTLSequential, ttl: 5}, createMode{ttlNode, true}, true},
		"a TTL's flag alone":    {call{op: OpCreate, flags: flagTTL, ttl: -1}, createMode{}, false},
		"a TTL beyond the most": {call{op: OpCreateTTL, flags: flagTTL, ttl: maxTTL + 1}, createMode{}, false},
		"negative flags":        {call{op: OpCreate, flags: -1, ttl: -1}, createMode{}, false},
	} {
		mode, ok := modeOf(&c.call)
		assert.Equal(t, c.ok, ok, name)
		if ok {
			assert.Equal(t, c.want, mode, name)
		}
	}
	r := &call{op: OpCreateTTL, path: "/n", acl: root, flags: flagTTL, ttl: 5}
	ch, code := viewOf(t, false).prepare(r, 7, nil)
	require.Equal(t, CodeOK, code)
	assert.Equal(t, 5*time.Millisecond, ch.ttl)
}

func TestAccessListsAreChecked(t *testing.T) {
	list := []ACL{{PermRead, "digest", joe.id}, {PermWrite, "ip", "10.0.0.0/8"}}
	inside, outside := identity{"ip", "10.1.2.3"}, identity{"ip", "11.1.2.3"}
	assert.True(t, allowed(nil, PermAdmin, nil), "no list, no limit")
	assert.True(t, allowed(root, PermAdmin, nil))
	assert.True(t, allowed(list, PermRead, []identity{joe}))
	assert.False(t, allowed(list, PermWrite, []identity{joe}))
	assert.True(t, allowed(list, PermWrite, []identity{joe, inside}))
	assert.False(t, allowed(list, PermWrite|PermRead, []identity{outside}))
	assert.True(t, allowed(list, PermAdmin, superuser))
	assert.Equal(t, []ACL{{PermRead, "digest", "joe:x"}, list[1]}, masked(list))
	assert.Equal(t, "joe:hash", list[0].ID, "the list itself is as it was")
}

func TestAListThatAClientSendsIsCompleted(t *testing.T) {
	ids := []identity{{"ip", "10.1.2.3"}, joe, {"sasl", "jim"}}
	fixed, ok := fixACL([]ACL{{PermRead, "auth", ""}, {PermRead, "digest", joe.id}}, ids, true)
	require.True(t, ok)
	assert.Equal(t, []ACL{{PermRead, "digest", joe.id}, {PermRead, "sasl", "jim"}}, fixed, "the client's own ids, each once")
	for name, bad := range map[string][]ACL{
		"nothing":           nil,
		"an unknown scheme": {{PermRead, "magic", "x"}},
		"no such world":     {{PermRead, "world", "some"}},
		"half a digest":     {{PermRead, "digest", "joe"}},
		"no address":        {{PermRead, "ip", "10.0.0.0/99"}},
		"a user of no SASL": {{PermRead, "sasl", ""}},
		"one bad of two":    {{PermRead, "world", "anyone"}, {PermRead, "ip", "x"}},
	} {
		_, ok := fixACL(bad, ids, true)
		assert.False(t, ok, name)
	}
	_, ok = fixACL([]ACL{{PermRead, "auth", ""}}, ids[:1], true)
	assert.False(t, ok, "an address proves nobody")
	_, ok = fixACL([]ACL{{PermRead, "sasl", "jim"}}, nil, false)
	assert.False(t, ok, "SASL is not served")
}

func TestCredentialsAreCollected(t *testing.T) {
	opts := &Options{Super: "super:secret", RequireSASL: true, SASL: map[string]string{"joe": "x"}}
	a := newCredentials(opts, "10.1.2.3:4711")
	before := a.ids
	assert.Equal(t, []identity{{"ip", "10.1.2.3"}}, a.ids)
	auth := func(scheme, data string) int32 { return a.authenticate(&call{scheme: scheme, data: []byte(data)}) }
	assert.Equal(t, CodeOK, auth("ip", ""))
	assert.Equal(t, CodeOK, auth("digest", "joe:pw"))
	assert.Equal(t, CodeOK, auth("digest", "joe:pw"))
	assert.Equal(t, CodeAuthFailed, auth("magic", "x"))
	assert.Len(t, a.ids, 2)
	assert.NotContains(t, a.ids, superuser[0])
	assert.Equal(t, CodeOK, auth("digest", "super:secret"))
	assert.Contains(t, a.ids, superuser[0])
	assert.Len(t, before, 1, "a request under way keeps what it came with")
	assert.True(t, a.lacksSASL())
	a.add(identity{"sasl", "joe"})
	assert.False(t, a.lacksSASL())
}
