// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"time"

	"github.com/zklock-go/zklock/internal/lab/wiring"
)

func init() {
	wiring.OptionsOf = func(opts any) *wiring.Options { return &opts.(*Options).lab }
	wiring.CutStreams = func(m any, down, up bool) { m.(*Member).cutStreams(down, up) }
	wiring.DelayStreams = func(m any, down, up time.Duration) { m.(*Member).delayStreams(down, up) }
	wiring.HoldForwards = func(m any) func() { return m.(*Member).holdForwards() }
	wiring.SetTickTime = func(m any, d time.Duration) { m.(*Member).setTickTime(d) }
	wiring.StandStill = func(m any) func() { return m.(*Member).standStill() }
	wiring.Shows = func(m any, zxid int64) bool { return m.(*Member).shows(zxid) }
	wiring.StopExpirer = func(s any) func() { return s.(*Server).stopExpirer() }
	wiring.LimitUpload = func(s any, client string, rate int) { s.(*Server).limitUpload(client, rate) }
	wiring.SetChildCounter = func(s any, path string, creates int32) { s.(*Server).setChildCounter(path, creates) }
	wiring.Waited = func(r any) time.Duration { return r.(*Request).waited }
	wiring.HostOf = func(s any, client string) string { return s.(*Server).hostOf(client) }
}
