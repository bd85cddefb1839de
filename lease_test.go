package zklock

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const leaseTerm = 10 * time.Second

// leaseAt runs a test of a lease of a session that was attached just now.
func leaseAt(t *testing.T, tick time.Duration, fn func(l *lease)) {
	synctest.Test(t, func(*testing.T) {
		l := newLease(clockFrom(nil), leaseTerm, tick)
		l.begun(l.now())
		fn(l)
	})
}

// op is an operation that takes a while.
func op(l *lease, takes time.Duration, quorum bool) {
	sent := l.now()
	time.Sleep(takes)
	l.note(sent, quorum)
}

func TestALeaseEndsALittleBeforeTheSession(t *testing.T) {
	leaseAt(t, 0, func(l *lease) {
		require.Equal(t, leaseTerm*95/100, l.remaining())
		time.Sleep(leaseTerm * 95 / 100)
		require.LessOrEqual(t, l.remaining(), time.Duration(0))
	})
}

func TestAnswersOfOneServerProveNothing(t *testing.T) {
	leaseAt(t, 0, func(l *lease) {
		for range 8 {
			time.Sleep(time.Second)
			op(l, time.Millisecond, false)
		}
		require.Less(t, l.remaining(), 2*time.Second)
	})
}

func TestAQuorumOperationProvesWhatWasAnsweredLongEnoughBefore(t *testing.T) {
	leaseAt(t, 0, func(l *lease) {
		time.Sleep(4 * time.Second)
		sent := l.now()
		op(l, 100*time.Millisecond, false)
		op(l, 0, true) // too soon after it: the follower may not have passed it on
		require.Less(t, l.remaining(), leaseTerm*95/100-4*time.Second)
		time.Sleep(leaseTerm / 4)
		op(l, 0, true)
		require.Equal(t, leaseTerm*95/100-l.now().since(sent), l.remaining(), "from when it was sent, not from when it was answered")
	})
}

// A leader that stood still answers what piled up before it hears which sessions are alive.
func TestASlowQuorumOperationProvesNothing(t *testing.T) {
	leaseAt(t, 2*time.Second, func(l *lease) {
		time.Sleep(time.Second)
		op(l, 0, false) // a ping, which a follower answered while the leader stood still
		time.Sleep(2 * time.Second)
		op(l, 3*time.Second, true)
		require.Equal(t, leaseTerm*95/100-6*time.Second, l.remaining(), "from the attachment, still")
		time.Sleep(time.Second / 2)
		op(l, 0, true)
		require.Equal(t, leaseTerm*95/100-6*time.Second-time.Second/2, l.remaining(), "the leader has pinged nobody yet")
		time.Sleep(time.Second / 2)
		op(l, 0, true)
		require.Equal(t, leaseTerm*95/100-4*time.Second, l.remaining(), "it has: what was sent at 3 s and answered at 6 s counts")
	})
}

func TestATickTimeShortensWhatAFollowerMayKeepToItself(t *testing.T) {
	leaseAt(t, time.Second, func(l *lease) {
		time.Sleep(4 * time.Second)
		op(l, 0, false)
		time.Sleep(500 * time.Millisecond)
		op(l, 0, true)
		require.Equal(t, leaseTerm*95/100-500*time.Millisecond, l.remaining())
	})
}

func TestABusyClientKeepsFewStampsAndAFreshLease(t *testing.T) {
	leaseAt(t, 0, func(l *lease) {
		for range 20000 {
			op(l, time.Millisecond, true)
		}
		require.Greater(t, l.remaining(), leaseTerm*95/100-leaseTerm/4-leaseTerm/16)
		require.Less(t, len(l.answered), 100)
	})
}

func TestTheClockThatSaysLongerCounts(t *testing.T) {
	a := instant{mono: time.Unix(0, 0), wall: time.Unix(0, 0)}
	require.Equal(t, time.Hour, instant{mono: time.Unix(1, 0), wall: time.Unix(3600, 0)}.since(a))
	require.Equal(t, time.Hour, instant{mono: time.Unix(3600, 0), wall: time.Unix(-50, 0)}.since(a))
}

// FuzzFrames cuts the same stream differently: what is shown must not depend on it.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 1, 9}, uint64(1))
	f.Add(bytes.Repeat([]byte{0, 0, 0, 40}, 30), uint64(2))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 2}, uint64(3))
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		var whole, cut [][]byte
		var a, b frames
		a.feed(stream, 20, func(h []byte) { whole = append(whole, bytes.Clone(h)) })
		r := rand.New(rand.NewPCG(seed, 0))
		for rest := stream; len(rest) > 0; {
			n := 1 + r.IntN(len(rest))
			b.feed(rest[:n], 20, func(h []byte) { cut = append(cut, bytes.Clone(h)) })
			rest = rest[n:]
		}
		require.Equal(t, whole, cut)
		for i, at := 0, 0; i < len(whole); i++ {
			require.True(t, bytes.HasPrefix(stream[at:], whole[i]))
			at += 4 + max(0, int(int32(binary.BigEndian.Uint32(stream[at:]))))
		}
	})
}
