// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"slices"
	"testing"

	"github.com/zklock-go/zklock/compare/ways"
)

// signaled returns a trial whose holder has received this many signs.
func signaled(client string, signs int) *trial {
	return &trial{client: Client{Name: client}, record: Trial{Signs: make([]Sign, signs)}}
}

func TestClientsThatWereNotifiedBeforeTheFaultAreNamed(t *testing.T) {
	if err := early([]*trial{signaled("one", 0), signaled("two", 0)}); err != nil {
		t.Error(err)
	}
	var d *disturbed
	if err := early([]*trial{signaled("one", 0), signaled("two", 1), signaled("three", 2)}); !errors.As(err, &d) || !slices.Equal(d.clients, []string{"two", "three"}) {
		t.Errorf("%v", err)
	}
}

func TestDisturbedAttemptsAreCounted(t *testing.T) {
	broken := errors.New("no server")
	for name, c := range map[string]struct {
		outcomes []error // of the attempts; the last one repeats
		began    int
		one, two int
		err      error
	}{
		"at once":              {[]error{nil}, 1, 0, 0, nil},
		"at the third attempt": {[]error{&disturbed{[]string{"one"}}, &disturbed{[]string{"one", "two"}}, nil}, 3, 2, 1, nil},
		"never":                {[]error{&disturbed{[]string{"two"}}}, attempts, 0, attempts, &disturbed{}},
		"another error":        {[]error{broken}, 1, 0, 0, broken},
	} {
		t.Run(name, func(t *testing.T) {
			began := 0
			trials, early, err := undisturbed(func() ([]Trial, error) {
				err := c.outcomes[min(began, len(c.outcomes)-1)]
				began++
				return []Trial{{Round: began}}, err
			})
			if began != c.began || trials[0].Round != began || early["one"] != c.one || early["two"] != c.two {
				t.Errorf("%d attempts, the result of number %d, early %v", began, trials[0].Round, early)
			}
			var d *disturbed
			if errors.As(c.err, &d) != errors.As(err, &d) || (err == nil) != (c.err == nil) {
				t.Errorf("%v, not %v", err, c.err)
			}
		})
	}
}

// A trial that does not apply is void and counts no disturbed attempt.
func TestATrialThatDoesNotApplyIsVoid(t *testing.T) {
	group := []Client{{Name: "one", Family: redis}}
	got := together(t.Context(), group, Fault{Name: "leader killed", alone: true}, 2)
	if len(got) != 1 || got[0].Void == "" || got[0].Early == nil || *got[0].Early != 0 || got[0].Lease != ways.Lease.Seconds() || got[0].Round != 2 {
		t.Errorf("%+v", got)
	}
}
