// SPDX-License-Identifier: Apache-2.0

package zkcontainer

import (
	"context"
	"errors"
	"os"
	"testing"
)

// requireEnv makes a test that cannot run fail instead of being skipped. Setting CI has the same effect.
const requireEnv = "ZKCONTAINER_REQUIRE"

// RunEnsemble starts an ensemble of n servers, which is stopped when the test ends. If no container engine answers or an image
// is missing, it skips the test, or fails it if ZKCONTAINER_REQUIRE or CI is set.
func RunEnsemble(ctx context.Context, t testing.TB, n int, opts ...Options) *Ensemble {
	t.Helper()
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	o.Servers = n
	z, err := available(ctx, t, o).Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if t.Failed() {
			t.Log(z.Logs(ctx))
		}
		if err := z.Stop(ctx); err != nil {
			t.Errorf("zkcontainer: clean-up: %v", err)
		}
	})
	return z
}

// available returns the engine once it has the images. If there is no engine or image, it skips or fails the test.
func available(ctx context.Context, t testing.TB, o Options) *Engine {
	t.Helper()
	e, err := Find()
	if err == nil {
		err = errors.Join(e.provideReaper(ctx), e.provide(ctx, o))
	}
	if err == nil {
		return e
	}
	if os.Getenv(requireEnv) != "" || os.Getenv("CI") != "" {
		t.Fatalf("zkcontainer: %v", err)
	}
	t.Skipf("zkcontainer: %v", err)
	return nil
}

// provide ensures that the images of the options are available.
func (e *Engine) provide(ctx context.Context, o Options) error {
	if o.Tools != "" {
		if err := e.Fetch(ctx, o.Tools); err != nil {
			return err
		}
	}
	if o.Image != "" {
		return e.Fetch(ctx, o.Image)
	}
	_, err := e.Image(ctx)
	return err
}
