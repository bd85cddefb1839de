// SPDX-License-Identifier: Apache-2.0

package krb5_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/adapters/kerberos"
	"github.com/zklock-go/zklock/adapters/kerberos/internal/krb5"
	"github.com/zklock-go/zklock/zktest"
)

// These tests of kerberos.Login are in this directory because the KDC is in this package's tests.

const realm = "A.TEST"

// third is a third of a session timeout of 10 s, which is how long a login may take.
const third = 10 * time.Second / 3

// A world has a KDC, a principal worker with a keytab, and the services of servers.
type world struct {
	*krb5.KDC
	t      *testing.T
	keytab string
	opts   *kerberos.Options
	login  *kerberos.Login
}

// virtual runs a test in virtual time, with tickets that last for life. A goroutine that is left when it ends fails the test.
func virtual(t *testing.T, life time.Duration, fn func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{KDC: krb5.NewKDC(realm, life), t: t, keytab: filepath.Join(t.TempDir(), "keytab")}
		for _, server := range []string{"zk1", "zk2", "zk3"} {
			w.Add("zookeeper/"+server, krb5.AES256SHA1)
		}
		w.rotate(1, true)
		w.opts = &kerberos.Options{Config: krb5.Serve(t, "", w.KDC)}
		login, err := kerberos.FromKeytab("worker", w.keytab, w.opts)
		require.NoError(t, err)
		w.login = login
		defer login.Close()
		fn(t, w)
	})
}

// rotate gives the worker a new key, which the keytab has as well if written.
func (w *world) rotate(version uint32, written bool) {
	w.Add("worker", krb5.AES256SHA1)
	if written {
		w.write(version)
	}
}

func (w *world) write(version uint32) {
	require.NoError(w.t, os.WriteFile(w.keytab, w.Keytab("worker", version), 0o600))
}

// logIn logs in to a server within a third of a session timeout.
func (w *world) logIn(host string) error { return w.logInWith(w.login, host) }

func (w *world) logInWith(login *kerberos.Login, host string) error {
	ctx, cancel := context.WithTimeout(w.t.Context(), third)
	defer cancel()
	return login.LogIn(ctx, host+":2181", w.Acceptor("zookeeper/"+host, func(krb5.Principal) {}))
}

func servers(hosts ...string) (list []string) {
	for _, h := range hosts {
		list = append(list, h+":2181")
	}
	return list
}

func TestALoginNeedsNoKDCForTheServersOfAClient(t *testing.T) {
	virtual(t, 10*time.Hour, func(t *testing.T, w *world) {
		require.NoError(t, w.logIn("zk1"))
		w.login.Prepare(servers("zk1", "zk2", "ZK3."))
		synctest.Wait()
		for round := 1; round <= 5; round++ {
			for _, host := range []string{"zk1", "zk2", "zk3"} {
				require.Equal(t, round, w.Asked("zookeeper/"+host))
			}
			require.Equal(t, 2*round, w.Asked("krbtgt/"+realm), "without and with preauthentication")
			w.Become(krb5.Silent, 0)
			time.Sleep(4*time.Hour - time.Minute)
			for _, host := range []string{"zk1", "zk2", "zk3"} {
				start := time.Now()
				require.NoError(t, w.logIn(host), "there are tickets")
				require.Equal(t, start, time.Now())
			}
			w.Become(krb5.Up, 0)
			for start := time.Now(); w.Asked("krbtgt/"+realm) == 2*round; time.Sleep(time.Minute) {
				require.Less(t, time.Since(start), time.Hour+2*time.Minute, "half of the tickets' life is over")
			}
			synctest.Wait()
		}
	})
}

// A ticket for a server that was needed later ends with the first ticket. It is replaced with it, so that each lasts for half its life.
func TestAllTicketsAreReplacedWithTheFirst(t *testing.T) {
	virtual(t, 10*time.Hour, func(t *testing.T, w *world) {
		require.NoError(t, w.logIn("zk1"))
		time.Sleep(3 * time.Hour)
		require.NoError(t, w.logIn("zk2"))
		time.Sleep(2*time.Hour + time.Minute)
		for _, host := range []string{"zk1", "zk2"} {
			require.Equal(t, 2, w.Asked("zookeeper/"+host))
		}
		w.Become(krb5.Silent, 0)
		time.Sleep(8 * time.Hour)
		require.NoError(t, w.logIn("zk1"))
		require.NoError(t, w.logIn("zk2"))
	})
}

// The service ticket has ended, and the KDC is silent: the next one was there in time.
func TestAReconnectAfterTheTicketsEndNeedsNoKDC(t *testing.T) {
	virtual(t, 10*time.Hour, func(t *testing.T, w *world) {
		require.NoError(t, w.logIn("zk1"))
		time.Sleep(9 * time.Hour)
		w.Become(krb5.Silent, 0)
		time.Sleep(2 * time.Hour)
		require.NoError(t, w.logIn("zk1"))
	})
}

func TestAnAnswerThatComesTooLateForOneLoginServesTheNext(t *testing.T) {
	virtual(t, 10*time.Hour, func(t *testing.T, w *world) {
		w.Become(krb5.Up, 3800*time.Millisecond/3) // two questions for the first ticket, and one for the server's
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				err := w.logIn("zk1")
				assert.ErrorContains(t, err, "no answer from the KDC")
				assert.NotErrorIs(t, err, zk.ErrAuthFailed)
				assert.NoError(t, w.logIn("zk1"))
			})
		}
		wg.Wait()
		require.Equal(t, 1, w.Asked("zookeeper/zk1"))
		require.Equal(t, 2, w.Asked("krbtgt/"+realm), "without and with preauthentication")
	})
}

// gokrb5 tried to renew the ticket that had ended, for days.
func TestALoginRecoversFromAKDCThatWasDownAcrossTheTicketsEnd(t *testing.T) {
	for name, state := range map[string]krb5.State{"down": krb5.Down, "silent": krb5.Silent} {
		virtual(t, 10*time.Hour, func(t *testing.T, w *world) {
			require.NoError(t, w.logIn("zk1"))
			time.Sleep(time.Hour)
			w.Become(state, 0)
			time.Sleep(12 * time.Hour)
			require.Error(t, w.logIn("zk1"), name)
			require.NotErrorIs(t, w.logIn("zk1"), zk.ErrAuthFailed, name)
			w.Become(krb5.Up, 0)
			time.Sleep(time.Minute) // a question may be under way
			require.NoError(t, w.logIn("zk1"), name)
		})
	}
}

func TestARotatedKeytabIsReadAgain(t *testing.T) {
	virtual(t, 10*time.Hour, func(t *testing.T, w *world) {
		require.NoError(t, w.logIn("zk1"))
		w.rotate(2, false)
		time.Sleep(9 * time.Hour)
		require.NoError(t, w.logIn("zk1"), "the tickets are still valid")
		w.write(2)
		time.Sleep(3 * time.Hour)
		require.NoError(t, w.logIn("zk1"))

		w.rotate(3, false)
		time.Sleep(12 * time.Hour)
		err := w.logIn("zk1")
		require.ErrorIs(t, err, zk.ErrAuthFailed)
		require.ErrorContains(t, err, "the password or the keytab's key is wrong")
		w.write(3)
		time.Sleep(11 * time.Second) // for 10 s, a refusal is repeated without asking
		require.NoError(t, w.logIn("zk1"))

		require.NoError(t, os.WriteFile(w.keytab, []byte{5, 2, 0}, 0o600))
		time.Sleep(6 * time.Hour)
		require.NoError(t, os.Remove(w.keytab))
		time.Sleep(6 * time.Hour)
		require.NoError(t, w.logIn("zk1"), "without a keytab that can be read, the former keys are used")
	})
}

// A KDC may lock a principal after a few wrong keys.
func TestAWrongKeyIsNotTriedAllTheTime(t *testing.T) {
	virtual(t, 10*time.Hour, func(t *testing.T, w *world) {
		w.rotate(2, false)
		for range 600 {
			require.ErrorIs(t, w.logIn("zk1"), zk.ErrAuthFailed)
			require.ErrorIs(t, w.logIn("zk2"), zk.ErrAuthFailed)
			time.Sleep(100 * time.Millisecond)
		}
		require.LessOrEqual(t, w.Asked("krbtgt/"+realm), 2*7, "in a minute")
	})
}

// The KDC has a new key, so it knows no ticket of before.
func TestALoginWhoseFirstTicketIsRejectedGetsAnother(t *testing.T) {
	virtual(t, 10*time.Hour, func(t *testing.T, w *world) {
		require.NoError(t, w.logIn("zk1"))
		w.Add("krbtgt/"+realm, krb5.AES128SHA1)
		require.NoError(t, w.logIn("zk2"))
		require.Equal(t, 4, w.Asked("krbtgt/"+realm))
		require.Equal(t, 2, w.Asked("zookeeper/zk2"))
	})
}

// The server's keytab has only the new key, so it can read no ticket of before.
func TestATicketThatAServerRejectsIsReplaced(t *testing.T) {
	virtual(t, 10*time.Hour, func(t *testing.T, w *world) {
		require.NoError(t, w.logIn("zk1"))
		time.Sleep(time.Hour)
		w.Add("zookeeper/zk1", krb5.AES128SHA2)
		err := w.logIn("zk1")
		require.ErrorContains(t, err, "server rejected the Kerberos ticket, and its log has the reason; another ticket is requested")
		require.NotErrorIs(t, err, zk.ErrAuthFailed)
		synctest.Wait()
		require.NoError(t, w.logIn("zk1"))
		require.Equal(t, 2, w.Asked("zookeeper/zk1"))

		rejects := func([]byte) ([]byte, error) { return nil, zk.ErrAuthFailed }
		for range 100 {
			require.ErrorIs(t, w.login.LogIn(t.Context(), "zk1:2181", rejects), zk.ErrAuthFailed, "another ticket would not help")
		}
		synctest.Wait()
		require.Equal(t, 2, w.Asked("zookeeper/zk1"))
	})
}

func TestAServiceThatTheKDCDoesNotKnowIsRefusedAtOnce(t *testing.T) {
	virtual(t, 10*time.Hour, func(t *testing.T, w *world) {
		start := time.Now()
		err := w.logIn("zk9")
		require.ErrorIs(t, err, zk.ErrAuthFailed)
		require.ErrorContains(t, err, "no Kerberos ticket for zookeeper/zk9: ")
		require.ErrorContains(t, err, "the KDC does not know the server's principal")
		require.ErrorContains(t, err, "KDC_ERR_S_PRINCIPAL_UNKNOWN")
		require.Equal(t, start, time.Now())
		require.Equal(t, 2, w.Asked("krbtgt/"+realm), "another first ticket would not help")
	})
}

func TestClientsShareALoginAndCloseItAtAnyTime(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Millisecond, time.Second, time.Minute} {
		virtual(t, time.Minute, func(t *testing.T, w *world) {
			w.Become(krb5.Up, delay)
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					for range 20 {
						_ = w.logIn(fmt.Sprint("zk", i%3+1))
						w.login.Prepare(servers("zk1", "zk2", "zk3", "nonsense"))
						_ = w.login.String()
						time.Sleep(time.Second)
					}
				})
			}
			time.Sleep(10*time.Second + delay/3)
			start := time.Now()
			w.login.Close()
			require.Equal(t, start, time.Now(), "Close does not wait for the KDC")
			err := w.logIn("zk1")
			require.ErrorIs(t, err, zk.ErrAuthFailed)
			require.ErrorContains(t, err, "the login is closed")
			wg.Wait()
			w.login.Close()
		})
	}
}

func TestACacheIsReadAgain(t *testing.T) {
	virtual(t, 10*time.Hour, func(t *testing.T, w *world) {
		path := filepath.Join(t.TempDir(), "cache")
		kinit := func(name string) { require.NoError(t, os.WriteFile(path, w.Cache(name), 0o600)) }
		w.Add("joe", krb5.AES128SHA1)
		kinit("joe")
		login, err := kerberos.FromCache(path, w.opts)
		require.NoError(t, err)
		defer login.Close()
		require.Equal(t, "joe@"+realm, login.String())
		require.NoError(t, w.logInWith(login, "zk1"))
		time.Sleep(9*time.Hour + 30*time.Minute)
		kinit("joe")
		time.Sleep(time.Hour)
		w.Become(krb5.Silent, 0)
		require.NoError(t, w.logInWith(login, "zk1"), "kinit was in time")
		w.Become(krb5.Up, 0)
		time.Sleep(11 * time.Hour)
		err = w.logInWith(login, "zk1")
		require.ErrorContains(t, err, "the ticket in the credential cache has expired, run kinit")
		require.NotErrorIs(t, err, zk.ErrAuthFailed, "it can be renewed")
		require.NoError(t, os.WriteFile(path, w.Cache("joe")[:50], 0o600))
		err = w.logInWith(login, "zk1")
		require.ErrorContains(t, err, "cut short")
		kinit("worker")
		require.NoError(t, w.logInWith(login, "zk1"))
		require.Equal(t, "worker@"+realm, login.String())
	})
}

func TestMistakesAreRefusedAtOnce(t *testing.T) {
	virtual(t, 10*time.Hour, func(t *testing.T, w *world) {
		text := filepath.Join(t.TempDir(), "text")
		require.NoError(t, os.WriteFile(text, []byte("[libdefaults]\n"), 0o600))
		empty := filepath.Join(t.TempDir(), "empty")
		require.NoError(t, os.WriteFile(empty, nil, 0o600))
		for want, make := range map[string]func() (*kerberos.Login, error){
			`krb5.conf names no KDC of the realm "OTHER"`:  func() (*kerberos.Login, error) { return kerberos.FromPassword("joe@OTHER", "secret", w.opts) },
			`krb5.conf names no KDC of the realm "a.test"`: func() (*kerberos.Login, error) { return kerberos.FromPassword("joe@a.test", "secret", w.opts) },
			`principal "" has an empty part`:               func() (*kerberos.Login, error) { return kerberos.FromPassword("", "secret", w.opts) },
			`principal "worker/" has an empty part`:        func() (*kerberos.Login, error) { return kerberos.FromKeytab("worker/", w.keytab, w.opts) },
			"no default_realm": func() (*kerberos.Login, error) {
				return kerberos.FromPassword("joe", "", &kerberos.Options{Config: text})
			},
			"no key for joe@" + realm:                func() (*kerberos.Login, error) { return kerberos.FromKeytab("joe", w.keytab, w.opts) },
			"malformed keytab":                       func() (*kerberos.Login, error) { return kerberos.FromKeytab("worker", text, w.opts) },
			"keytab " + empty + ": malformed keytab": func() (*kerberos.Login, error) { return kerberos.FromKeytab("worker", empty, w.opts) },
			"malformed credential cache":             func() (*kerberos.Login, error) { return kerberos.FromCache(text, w.opts) },
			"KCM:0: only FILE caches are supported: kinit -c": func() (*kerberos.Login, error) {
				t.Setenv("KRB5CCNAME", "KCM:0")
				return kerberos.FromCache("", w.opts)
			},
			"KEYRING:persistent:0: only FILE caches": func() (*kerberos.Login, error) { return kerberos.FromCache("KEYRING:persistent:0", w.opts) },
			"open /none: no such file":               func() (*kerberos.Login, error) { return kerberos.FromCache("FILE:/none", w.opts) },
		} {
			_, err := make()
			require.Error(t, err, want)
			require.ErrorContains(t, err, "kerberos: ")
		}
	})
}

// A function of the program that does not return, or panics, or fails for a while, delays nothing else.
func TestAFunctionForHostsDelaysNothing(t *testing.T) {
	virtual(t, 10*time.Hour, func(t *testing.T, w *world) {
		release := make(chan struct{})
		var calls atomic.Int32
		w.opts.Host = func(dialed string) (string, error) {
			switch {
			case dialed == "hangs":
				<-release
			case dialed == "panics":
				panic("a defect of the program")
			case dialed == "fails" && calls.Add(1) < 3:
				return "", errors.New("no such host")
			}
			return "zk2", nil
		}
		login, err := kerberos.FromKeytab("worker", w.keytab, w.opts)
		require.NoError(t, err)
		login.Prepare(servers("hangs"))
		login.Prepare(servers("panics", "fails"))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Equal(t, 1, w.Asked("zookeeper/zk2"))
		time.Sleep(6 * time.Hour)
		require.Equal(t, 2, w.Asked("zookeeper/zk2"))
		login.Close()
		close(release)
	})
}

func TestTheDefaultCacheIsThatOfTheConfiguration(t *testing.T) {
	virtual(t, time.Hour, func(t *testing.T, w *world) {
		path := filepath.Join(t.TempDir(), "cache")
		require.NoError(t, os.WriteFile(path, w.Cache("worker"), 0o600))
		conf := krb5.Serve(t, " default_ccache_name = FILE:"+path, w.KDC)
		t.Setenv("KRB5CCNAME", "")
		login, err := kerberos.FromCache("", &kerberos.Options{Config: conf})
		require.NoError(t, err)
		require.Equal(t, "worker@"+realm, login.String())
	})
}

// rogue returns a pass function whose answers are changed.
func (w *world) rogue(change func(step int, answer []byte) []byte) func([]byte) ([]byte, error) {
	honest, step := w.Acceptor("zookeeper/zk1", func(krb5.Principal) {}), 0
	return func(token []byte) ([]byte, error) {
		answer, err := honest(token)
		step++
		return change(step, answer), err
	}
}

// changed returns an answer with a few changes.
func changed(r *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	for range 1 + r.IntN(3) {
		if len(b) > 0 {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
	}
	return b[:len(b)-min(len(b), r.IntN(4)*r.IntN(20))]
}

//zklock:promise P8.5 P18.6
func TestAServerThatCannotProveWhoItIsIsRefused(t *testing.T) {
	mutations := 10_000
	if testing.Short() {
		mutations = 500
	}
	virtual(t, 10*time.Hour, func(t *testing.T, w *world) {
		log := func(pass func([]byte) ([]byte, error)) error { return w.login.LogIn(t.Context(), "zk1:2181", pass) }
		require.NoError(t, w.logIn("zk1"))
		r := rand.New(rand.NewPCG(1, 2))
		for at := 1; at <= 2; at++ {
			for n := range 120 { // cut short
				err := log(w.rogue(func(step int, answer []byte) []byte {
					if step == at {
						return answer[:min(n, len(answer)-1)]
					}
					return answer
				}))
				require.ErrorIs(t, err, zk.ErrAuthFailed)
			}
			for range mutations {
				same := false
				err := log(w.rogue(func(step int, answer []byte) []byte {
					if step == at {
						ruined := changed(r, answer)
						same = bytes.Equal(ruined, answer)
						return ruined
					}
					return answer
				}))
				if !same && err == nil {
					t.Fatal("accepted")
				}
			}
		}
		for name, answer := range map[string][]byte{"nothing": {}, "no SASL": nil, "a page": []byte("HTTP/1.1 400 Bad"), "much": make([]byte, 1<<20)} {
			err := log(func([]byte) ([]byte, error) { return answer, nil })
			require.ErrorIs(t, err, zk.ErrAuthFailed, name)
		}
		other := w.Acceptor("zookeeper/zk2", func(krb5.Principal) {})
		require.Error(t, log(other), "it does not have the key of zk1")
	})
}

// FuzzServer fuzzes the tokens of a server.
func FuzzServer(f *testing.F) {
	k := krb5.NewKDC(realm, time.Hour)
	k.Add("joe", krb5.AES256SHA1)
	k.Add("zookeeper/zk1", krb5.AES256SHA1)
	keytab := filepath.Join(f.TempDir(), "keytab")
	require.NoError(f, os.WriteFile(keytab, k.Keytab("joe", 1), 0o600))
	login, err := kerberos.FromKeytab("joe", keytab, &kerberos.Options{Config: krb5.Serve(f, "", k)})
	require.NoError(f, err)
	f.Cleanup(login.Close)
	honest := k.Acceptor("zookeeper/zk1", func(krb5.Principal) {})
	var tokens [][]byte
	require.NoError(f, login.LogIn(f.Context(), "zk1:2181", func(token []byte) ([]byte, error) {
		answer, err := honest(token)
		tokens = append(tokens, answer)
		return answer, err
	}))
	f.Add(tokens[0], false)
	f.Add(tokens[1], true)
	f.Fuzz(func(t *testing.T, token []byte, second bool) {
		pass, step := k.Acceptor("zookeeper/zk1", func(krb5.Principal) {}), 0
		_ = login.LogIn(t.Context(), "zk1:2181", func(ours []byte) ([]byte, error) {
			answer, err := pass(ours)
			if step++; (step == 2) == second && step <= 2 {
				return token, nil
			}
			return answer, err
		})
	})
}

// A KDC whose every answer is changed: a login fails, and the next one with an honest KDC succeeds.
//
//zklock:promise P8.5
func TestARogueKDCIsRefused(t *testing.T) {
	mutations := 3_000
	if testing.Short() {
		mutations = 100
	}
	virtual(t, 10*time.Hour, func(t *testing.T, w *world) {
		r := rand.New(rand.NewPCG(1, 2))
		for range mutations {
			login, err := kerberos.FromKeytab("worker", w.keytab, w.opts)
			require.NoError(t, err)
			after := r.IntN(3)
			w.Ruin(func(answer []byte) []byte {
				if after--; after < 0 {
					return changed(r, answer)
				}
				return answer
			})
			_ = w.logInWith(login, "zk1")
			login.Close()
		}
		w.Ruin(nil)
		require.NoError(t, w.logIn("zk1"))
	})
}

const (
	opSASL     = 102
	authFailed = -115 & 0xffffffff
)

// gate returns a connection to a server that requires a login with Kerberos. The server behind it requires none: the gate answers
// the requests of the login, and passes everything else on.
func gate(server net.Conn, accept func(token []byte) ([]byte, error)) net.Conn {
	ours, theirs := net.Pipe()
	hangUp := func() { ours.Close(); server.Close() }
	go func() { // ends with the connection
		defer hangUp()
		_, _ = io.Copy(ours, server)
	}()
	go func() { // ends with the connection
		defer hangUp()
		for {
			head := make([]byte, 4)
			if _, err := io.ReadFull(ours, head); err != nil {
				return
			}
			p := make([]byte, binary.BigEndian.Uint32(head))
			if _, err := io.ReadFull(ours, p); err != nil {
				return
			}
			if len(p) < 12 || binary.BigEndian.Uint32(p[4:]) != opSASL {
				if _, err := server.Write(append(head, p...)); err != nil {
					return
				}
				continue
			}
			token, err := accept(p[12:])
			r := append(bytes.Clone(p[:4]), make([]byte, 8)...)
			if err != nil {
				r = binary.BigEndian.AppendUint32(r, authFailed)
			} else {
				r = append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(r, 0), uint32(len(token))), token...)
			}
			if _, err := ours.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(r))), r...)); err != nil {
				return
			}
		}
	}()
	return theirs
}

// A client holds a lock over 30 lifetimes of tickets, with three outages of the KDC, one of which is longer than a ticket's life,
// a rotated keytab, and a sleep.
func TestAClientWorksOverManyLifetimesOfTickets(t *testing.T) {
	const life, steps = 2 * time.Minute, 10 // in a life
	virtual(t, life, func(t *testing.T, w *world) {
		srv := zktest.Start(t, zktest.Options{Servers: 3})
		for _, address := range srv.Addrs() {
			host, _, err := net.SplitHostPort(address)
			require.NoError(t, err)
			w.Add("zookeeper/"+host, krb5.AES256SHA1)
		}
		var logins atomic.Int32
		dial := srv.DialFrom("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		client, err := zklock.Connect(ctx, srv.Addrs(), &zklock.Options{
			Login: w.login, SessionTimeout: 10 * time.Second,
			Dialer: func(network, address string, timeout time.Duration) (net.Conn, error) {
				conn, err := dial(network, address, timeout)
				if err != nil {
					return nil, err
				}
				host, _, _ := net.SplitHostPort(address)
				return gate(conn, w.Acceptor("zookeeper/"+host, func(krb5.Principal) { logins.Add(1) })), nil
			},
		})
		require.NoError(t, err)
		defer client.Close()
		hold, err := client.Mutex("/a").Lock(t.Context())
		require.NoError(t, err)
		lost := 0
		for step := range 30 * steps {
			switch step {
			case 40, 100: // an outage of less than half a ticket's life
				w.Become(krb5.Silent, 0)
			case 44, 104, 185:
				w.Become(krb5.Up, 0)
			case 120:
				w.rotate(2, true)
			case 150: // an outage of more than a ticket's life
				w.Become(krb5.Down, 0)
			case 230: // a machine that sleeps does nothing
				srv.Partition("a")
				w.Become(krb5.Silent, 0)
			case 260:
				srv.HealClient("a")
				w.Become(krb5.Up, 0)
			}
			if step%3 == 0 {
				srv.DropConnections()
			}
			time.Sleep(life / steps)
			quiet := step >= 150 && step < 190 || step >= 230 && step < 265
			if hold.Check() != nil {
				require.True(t, quiet, "the hold was lost in step %d: %v", step, hold.Check())
				lost++
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				if again, err := client.Mutex("/a").Lock(ctx); err == nil {
					hold = again
				} else {
					require.True(t, quiet, "step %d: %v", step, err)
				}
				cancel()
			}
		}
		require.NoError(t, hold.Check())
		require.NoError(t, hold.Unlock(t.Context()))
		require.Greater(t, logins.Load(), int32(80))
		t.Logf("%d logins, %d questions for a first ticket; no hold in %d steps", logins.Load(), w.Asked("krbtgt/"+realm), lost)
	})
}
