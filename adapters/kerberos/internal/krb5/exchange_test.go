// SPDX-License-Identifier: Apache-2.0

package krb5

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const realm = "A.TEST"

var joe = Principal{realm, []string{"joe"}}

// world returns a client of a KDC that knows joe, whose password is secret, and zookeeper/zk1.test.
func world(t *testing.T, lines string) (*KDC, *Client) {
	k := NewKDC(realm, 10*time.Hour)
	key, err := KeyOf(AES256SHA1, "secret", realm+"joe", nil)
	require.NoError(t, err)
	k.Set("joe", key)
	k.Add("zookeeper/zk1.test", AES128SHA1)
	c, err := LoadConfig(Serve(t, lines, k))
	require.NoError(t, err)
	return k, NewClient(c)
}

func TestTicketsOfEveryEncryptionType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, c := world(t, "")
		for _, client := range Encryption {
			for _, tgt := range Encryption {
				key := k.Add("joe", client)
				k.Add("krbtgt/"+realm, tgt)
				first, err := c.LogIn(t.Context(), joe, keytabKeys{client: {key: key}})
				require.NoError(t, err)
				ticket, err := c.Service(t.Context(), first, []string{"zookeeper", "zk1.test"})
				require.NoError(t, err)
				require.True(t, ticket.Client.Equal(joe))
				require.Equal(t, "zookeeper/zk1.test@"+realm, ticket.Service.String())
				require.WithinDuration(t, time.Now().Add(10*time.Hour), ticket.End, time.Second)
			}
		}
	})
}

func TestTheKDCsRefusalsAreReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := world(t, "")
		var refusal *KDCError
		_, err := c.LogIn(t.Context(), joe, Password("wrong"))
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, int32(WrongKey), refusal.Code)
		_, err = c.LogIn(t.Context(), Principal{realm, []string{"ann"}}, Password("secret"))
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, int32(ClientUnknown), refusal.Code)
		first, err := c.LogIn(t.Context(), joe, Password("secret"))
		require.NoError(t, err)
		_, err = c.Service(t.Context(), first, []string{"zookeeper", "zk2.test"})
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, int32(ServiceUnknown), refusal.Code)
		_, err = c.LogIn(t.Context(), Principal{"OTHER", []string{"joe"}}, Password("secret"))
		require.ErrorIs(t, err, ErrNoKDC)
	})
}

// A KDC that answers in the KDC's place could otherwise learn a weakly encrypted time stamp, or keep the client busy.
func TestAKDCThatAsksForManyIterationsIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, c := world(t, "")
		for _, params := range []string{"\xff\xff\xff\xff", "\x00\x00\x00\x01", "\x00\x00\x00\x00"} {
			k.params = []byte(params)
			_, err := c.LogIn(t.Context(), joe, Password("secret"))
			require.ErrorContains(t, err, "iterations")
		}
		k.params = []byte{0, 0, 0x10, 0}
		_, err := c.LogIn(t.Context(), joe, Password("secret"))
		require.NoError(t, err)
	})
}

func TestServicesInOtherRealms(t *testing.T) {
	for name, lines := range map[string]string{"by referral": "", "by domain_realm": "[domain_realm]\n .far.test = B.TEST\n"} {
		synctest.Test(t, func(t *testing.T) {
			a, b := NewKDC(realm, time.Hour), NewKDC("B.TEST", time.Hour)
			key, err := KeyOf(AES256SHA1, "secret", realm+"joe", nil)
			require.NoError(t, err)
			a.Set("joe", key)
			b.Add("zookeeper/zk.far.test", AES256SHA1)
			a.Refer("zookeeper/zk.far.test", b)
			conf, err := LoadConfig(Serve(t, lines, a, b))
			require.NoError(t, err)
			c := NewClient(conf)
			first, err := c.LogIn(t.Context(), joe, Password("secret"))
			require.NoError(t, err)
			ticket, err := c.Service(t.Context(), first, []string{"zookeeper", "zk.far.test"})
			require.NoError(t, err, name)
			require.Equal(t, "zookeeper/zk.far.test@B.TEST", ticket.Service.String())
			require.Equal(t, joe, ticket.Client)
			require.Equal(t, lines == "", a.Asked("zookeeper/zk.far.test") == 1, "%s: only a client that does not know the realm requests it from A", name)
		})
	}
}

// Two realms that refer to each other would otherwise keep the client busy.
func TestReferralsInACircleEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := NewKDC(realm, time.Hour), NewKDC("B.TEST", time.Hour)
		key, err := KeyOf(AES256SHA1, "secret", realm+"joe", nil)
		require.NoError(t, err)
		a.Set("joe", key)
		a.Refer("zookeeper/zk", b)
		b.Refer("zookeeper/zk", a)
		conf, err := LoadConfig(Serve(t, "", a, b))
		require.NoError(t, err)
		c := NewClient(conf)
		first, err := c.LogIn(t.Context(), joe, Password("secret"))
		require.NoError(t, err)
		_, err = c.Service(t.Context(), first, []string{"zookeeper", "zk"})
		require.ErrorContains(t, err, "more than 8 realms")
		require.LessOrEqual(t, a.Asked("zookeeper/zk")+b.Asked("zookeeper/zk"), maxReferrals)
	})
}

func TestRepliesToOtherRequestsAreRefused(t *testing.T) {
	_, c := world(t, "")
	key := keyFor(AES256SHA1)
	ask := request{service: tgs(realm, realm), nonce: 7}
	answer := func(nonce int64, client, service Principal, made, end time.Time) reply {
		part := message(tagASPart, field(0, keyBytes(key)), field(1, sequence()), field(2, integer(nonce)), field(4, bits(0)), field(5, timestamp(made)),
			field(7, timestamp(end)), field(9, text(service.Realm)), field(10, nameOf(nameService, service.Name)))
		r := message(kindASReply, field(0, integer(5)), field(1, integer(kindASReply)), field(3, text(client.Realm)), field(4, nameOf(nameUser, client.Name)),
			field(5, message(tagTicket)), field(6, must(sealedWith(key, useASReply, part))))
		parsed, err := parseReply(kindASReply, r)
		require.NoError(t, err)
		return parsed
	}
	now := time.Now()
	later := now.Add(time.Hour)
	_, err := c.ticketFrom(answer(7, joe, tgs(realm, realm), now, later), key, useASReply, joe, ask)
	require.NoError(t, err)
	for name, r := range map[string]reply{
		"another nonce":           answer(8, joe, tgs(realm, realm), now, later),
		"another client":          answer(7, Principal{realm, []string{"ann"}}, tgs(realm, realm), now, later),
		"a client in another":     answer(7, Principal{"B", []string{"joe"}}, tgs(realm, realm), now, later),
		"another service":         answer(7, joe, Principal{realm, []string{"zookeeper", "zk1"}}, now, later),
		"a referral":              answer(7, joe, tgs("B", realm), now, later),
		"a service in another":    answer(7, joe, tgs(realm, "B"), now, later),
		"made an hour ago":        answer(7, joe, tgs(realm, realm), now.Add(-time.Hour), later),
		"made in an hour":         answer(7, joe, tgs(realm, realm), later, later.Add(time.Hour)),
		"a ticket that has ended": answer(7, joe, tgs(realm, realm), now, now.Add(-time.Second)),
	} {
		_, err := c.ticketFrom(r, key, useASReply, joe, ask)
		require.Error(t, err, name)
	}
	_, err = c.ticketFrom(answer(7, joe, tgs(realm, realm), now, later), keyFor(AES128SHA1), useASReply, joe, ask)
	require.ErrorIs(t, err, ErrKey, "a key of another encryption type")
}

// dialed replaces how clients connect to KDCs until the end of the test.
func dialed(t *testing.T, fn func(ctx context.Context, address string) (net.Conn, error)) {
	former := dial
	t.Cleanup(func() { dial = former })
	dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		require.Equal(t, "tcp", network)
		return fn(ctx, address)
	}
}

func TestASilentKDCIsAskedLastTheNextTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := world(t, "")
		former := dial
		var mu sync.Mutex
		var asked []string
		dialed(t, func(ctx context.Context, address string) (net.Conn, error) {
			mu.Lock()
			asked = append(asked, address)
			mu.Unlock()
			switch address {
			case "silent:88":
				<-ctx.Done()
				return nil, ctx.Err()
			case "broken:88":
				return nil, errors.New("connection refused")
			}
			return former(ctx, "tcp", strings.ToLower(realm)+":88")
		})
		p := profile{"libdefaults\ndefault_realm": {realm}, "realms\n" + realm + "\nkdc": {"silent", "broken", "good"}}
		conf, err := p.config()
		require.NoError(t, err)
		c := NewClient(conf)
		start := time.Now()
		first, err := c.LogIn(t.Context(), joe, Password("secret"))
		require.NoError(t, err)
		require.Equal(t, hedge, time.Since(start), "the silent one delays one question, once, by a second")
		require.Equal(t, []string{"silent:88", "broken:88", "good:88", "good:88"}, asked)
		_, err = c.Service(t.Context(), first, []string{"zookeeper", "zk1.test"})
		require.NoError(t, err)
		require.Equal(t, hedge, time.Since(start))

		k.Become(Silent, 0)
		_, err = c.LogIn(t.Context(), joe, Password("secret"))
		require.ErrorIs(t, err, ErrNoAnswer)
		require.ErrorContains(t, err, "no answer from the KDC")
		require.Equal(t, hedge+askLimit, time.Since(start))
	})
}

func TestAnotherKDCIsAskedIfOneAnswersNonsense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world(t, "")
		former := dial
		for name, nonsense := range map[string]string{
			"a page of a web server": "HTTP/1.1 400 Bad Request\r\n\r\n",
			"an empty answer":        "\x00\x00\x00\x00",
			"zeros":                  "\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00",
			"a hang-up":              "",
			"half an answer":         "\x00\x00\x00\x08\x00\x00",
			"a KDC out of service":   "\x00\x00\x00" + string(append([]byte{byte(len(outOfService()))}, outOfService()...)),
		} {
			dialed(t, func(ctx context.Context, address string) (net.Conn, error) {
				if address == "good:88" {
					return former(ctx, "tcp", strings.ToLower(realm)+":88")
				}
				ours, theirs := net.Pipe()
				go func() { // ends with the connection
					defer ours.Close()
					_, _ = io.CopyN(io.Discard, ours, 10)
					go io.Copy(io.Discard, ours) // ends with the connection
					_, _ = io.WriteString(ours, nonsense)
				}()
				return theirs, nil
			})
			p := profile{"libdefaults\ndefault_realm": {realm}, "realms\n" + realm + "\nkdc": {"bad", "good"}}
			conf, err := p.config()
			require.NoError(t, err)
			_, err = NewClient(conf).LogIn(t.Context(), joe, Password("secret"))
			require.NoError(t, err, name)
		}
	})
}

func outOfService() []byte { return NewKDC(realm, 0).refuse(ServiceUnavailable, nil) }

// The peer of gokrb5's client made it reserve what it announced: five bytes used gigabytes.
func TestAnAnswerUsesNoMoreMemoryThanItHas(t *testing.T) {
	for _, size := range []uint32{maxAnswer, maxAnswer + 1, 1 << 31, 1<<32 - 1} {
		announced := append(binary.BigEndian.AppendUint32(nil, size), 1)
		n := testing.AllocsPerRun(1, func() {
			_, err := readAnswer(bytes.NewReader(announced))
			require.Error(t, err)
		})
		require.Less(t, n, 50.0)
	}
	var b [8]byte
	binary.BigEndian.PutUint32(b[:], 4)
	answer, err := readAnswer(bytes.NewReader(b[:]))
	require.NoError(t, err)
	require.Len(t, answer, 4)
}

func TestCallsLeaveNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left
		k, c := world(t, "")
		k.Become(Silent, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.LogIn(ctx, joe, Password("secret"))
		require.ErrorIs(t, err, ErrNoAnswer)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
