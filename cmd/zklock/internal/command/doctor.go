// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
	"github.com/zklock-go/zklock/cmd/zklock/internal/show"
	"github.com/zklock-go/zklock/internal/escape"
	"github.com/zklock-go/zklock/operate"
)

const doctorAbout = `
Checks whether the servers are fit for locks at PATH and below (default /), and prints
the options to use with them. It asks all servers at once, and needs no more rights than
a lock does. Its writes are transactions that fail on purpose, except for one that
creates a node and deletes it, so no node remains.

Each check is OK, WARN (locks work, but not as well as they could), FAIL (locks do not
work, or two clients can hold the same one), or - (no server could be asked). Options are
printed only if every server could be asked. --session-timeout, --tick-time, --acl and
--auth are the values that the clients use.

The exit code is 0 if no check fails, 2 if one does, and with --strict 1 if there are
warnings only. Without --connect-timeout, the checks may take up to a minute; then the
report shows what is known, and the exit code is 69.`

const (
	CodeWarned outcome.Verdict = 1 // doctor --strict found a warning
	CodeUnfit  outcome.Verdict = 2 // doctor found a failure
)

func doctorCommand(std cli.Streams) *cli.Command {
	f := cli.NewFlags(std, "doctor", "[flags] [PATH]", doctorAbout)
	server := servers.New(f).Security(f).Nodes(f)
	asJSON := f.Bool("json", false, "print JSON")
	strict := f.Bool("strict", false, "exit with 1 if there are warnings")
	return f.Command(func(args []string) error {
		positional, err := f.Parse(args, 0, 1)
		if err != nil {
			return err
		}
		if !f.Given("connect-timeout") {
			server.Patience = longListing
		}
		r, err := examine(server, strings.Join(positional, ""))
		if r == nil {
			return outcome.ByCause(err)
		}
		var failed error
		if *asJSON {
			failed = show.JSON(std.Out, newReportJSON(r), true)
		} else {
			_, failed = std.Out.WriteString(ReportText(r))
		}
		return cmp.Or(err, failed, verdictOf(r, *strict))
	})
}

// examine examines the servers, for locks below path.
func examine(s *servers.Flags, path string) (*operate.Report, error) {
	opts, abort, err := s.Dialing()
	if err != nil {
		return nil, err
	}
	if path != "/" {
		opts.Root += path
	}
	ctx, stop := cli.UntilInterrupted()
	defer stop()
	var r *operate.Report
	err = s.Ask(ctx, func(ctx context.Context) error {
		defer context.AfterFunc(ctx, abort)()
		r, err = operate.Examine(ctx, []string{s.Address()}, opts)
		return err
	})
	if ctx.Err() != nil {
		return nil, outcome.Interrupted()
	}
	return r, err
}

// inFlags returns a check whose texts name the command's flags, in place of the library's options.
func inFlags(c operate.Check) operate.Check {
	c.Summary, c.Advice = flagNames.Replace(c.Summary), flagNames.Replace(c.Advice)
	return c
}

var flagNames = strings.NewReplacer(
	"Options.SessionTimeout", "--session-timeout", "Options.TickTime", "--tick-time", "Options.ACL", "--acl",
	"Options.Auth or Options.Login", "--auth (for SASL: --auth sasl:user:password)",
	"Configure TLS in Options.Dialer", "Set --tls, --tls-ca and --tls-cert", "configure TLS", "use --tls",
)

// verdictOf returns the error for the exit code of a report.
func verdictOf(r *operate.Report, strict bool) error {
	switch warnings, failures := count(r); {
	case failures > 0:
		return CodeUnfit.Of(nil)
	case warnings > 0 && strict:
		return CodeWarned.Of(nil)
	}
	return nil
}

// count returns how many checks are warnings and failures.
func count(r *operate.Report) (warnings, failures int) {
	for _, c := range r.Checks {
		switch c.Status {
		case operate.Warn:
			warnings++
		case operate.Fail:
			failures++
		}
	}
	return warnings, failures
}

// ReportText returns a report for a terminal.
func ReportText(r *operate.Report) string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SERVER\tVERSION\tMODE\tTIMEOUTS\tTICK\tSYNC\tWRITE")
	for _, s := range r.Servers {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", escape.Text(s.Addr), orDash(s.Version), orDash(s.Mode),
			rangeOf(s.MinSession, s.MaxSession), spanOf(s.TickTime), spanOf(s.Sync.Median), spanOf(s.Write.Median))
	}
	table.Flush()
	b.WriteByte('\n')
	for _, c := range r.Checks {
		writeCheck(&b, inFlags(c))
	}
	if r.SessionTimeout == 0 {
		fmt.Fprintf(&b, "\nOptions for these servers: unknown, because not every server could be asked\n\n%s\n", lastLine(r))
		return b.String()
	}
	fmt.Fprintf(&b, "\nOptions for these servers:\n  Go           %s\n  flags        %s\n  environment  %s\n\n%s\n", goOptions(r), flagOptions(r), variables(r), lastLine(r))
	return b.String()
}

// writeCheck writes a check, with its reason and advice unless it is OK.
func writeCheck(b *strings.Builder, c operate.Check) {
	const indent, width = "      ", 100
	text := cli.Wrap(c.ID+": "+c.Summary, indent, width)
	fmt.Fprintf(b, "%-5s %s\n", c.Status, strings.TrimPrefix(text, indent))
	if c.Status > operate.OK {
		fmt.Fprintf(b, "%s\n%s\n", cli.Wrap("Why: "+c.Why, indent, width), cli.Wrap("Do: "+c.Advice, indent, width))
	}
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return escape.Text(text)
}

// spanOf returns a duration for the table, or a dash for zero.
func spanOf(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return shortened(d).String()
}

func rangeOf(least, most time.Duration) string {
	if most == 0 {
		return "-"
	}
	return fmt.Sprintf("%v to %v", least, most)
}

// shortened rounds a measured duration to what is worth reading.
func shortened(d time.Duration) time.Duration {
	if d > 10*time.Millisecond {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

// goOptions returns the options to use, in Go.
func goOptions(r *operate.Report) string {
	text := "&zklock.Options{SessionTimeout: " + goDuration(r.SessionTimeout)
	if r.TickTime > 0 {
		text += ", TickTime: " + goDuration(r.TickTime)
	}
	return text + "}"
}

func goDuration(d time.Duration) string {
	if d%time.Second == 0 {
		return fmt.Sprintf("%d * time.Second", d/time.Second)
	}
	return fmt.Sprintf("%d * time.Millisecond", d/time.Millisecond)
}

// flagOptions returns the options to use, as flags.
func flagOptions(r *operate.Report) string {
	text := fmt.Sprintf("--session-timeout %v", r.SessionTimeout)
	if r.TickTime > 0 {
		text += fmt.Sprintf(" --tick-time %v", r.TickTime)
	}
	return text
}

// variables returns the options to use, as variables of the environment.
func variables(r *operate.Report) string {
	text := fmt.Sprintf("%s=%v", cli.Variable("session-timeout"), r.SessionTimeout)
	if r.TickTime > 0 {
		text += fmt.Sprintf(" %s=%v", cli.Variable("tick-time"), r.TickTime)
	}
	return text
}

// lastLine returns the last line of a report.
func lastLine(r *operate.Report) string {
	warnings, failures := count(r)
	skipped := 0
	for _, c := range r.Checks {
		if c.Status == operate.Skipped {
			skipped++
		}
	}
	return fmt.Sprintf("servers: %d, checks: %d, warnings: %d, failures: %d, not checked: %d", len(r.Servers), len(r.Checks), warnings, failures, skipped)
}

// reportJSON is a report in JSON. Durations are in milliseconds.
type reportJSON struct {
	OK             bool         `json:"ok"` // no check failed
	SessionTimeout float64      `json:"session_timeout_ms,omitempty"`
	TickTime       float64      `json:"tick_time_ms,omitempty"`
	Go             string       `json:"go,omitempty"` // empty if not every server could be asked, like the other options
	Flags          string       `json:"flags,omitempty"`
	Servers        []memberJSON `json:"servers"`
	Checks         []checkJSON  `json:"checks"`
}

type memberJSON struct {
	Addr       string       `json:"addr"`
	Version    string       `json:"version,omitempty"`
	Mode       string       `json:"mode,omitempty"`
	MinSession float64      `json:"min_session_ms,omitempty"`
	MaxSession float64      `json:"max_session_ms,omitempty"`
	TickTime   float64      `json:"tick_time_ms,omitempty"`
	Sync       *latencyJSON `json:"sync_ms,omitempty"`
	Write      *latencyJSON `json:"write_ms,omitempty"`
}

type latencyJSON struct {
	Median float64 `json:"median"`
	Worst  float64 `json:"worst"`
}

type checkJSON struct {
	ID      string   `json:"id"`
	Status  string   `json:"status"` // ok, warn, fail or skipped
	Servers []string `json:"servers,omitempty"`
	Summary string   `json:"summary"`
	Why     string   `json:"why"`
	Advice  string   `json:"advice,omitempty"`
}

// statuses are the words for a check's status in JSON.
var statuses = map[operate.Status]string{operate.Skipped: "skipped", operate.OK: "ok", operate.Warn: "warn", operate.Fail: "fail"}

func inMillis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func newReportJSON(r *operate.Report) reportJSON {
	j := reportJSON{
		OK: r.Err() == nil, SessionTimeout: inMillis(r.SessionTimeout), TickTime: inMillis(r.TickTime),
	}
	if r.SessionTimeout > 0 {
		j.Go, j.Flags = goOptions(r), flagOptions(r)
	}
	for _, s := range r.Servers {
		j.Servers = append(j.Servers, memberJSON{
			s.Addr, s.Version, s.Mode, inMillis(s.MinSession), inMillis(s.MaxSession), inMillis(s.TickTime),
			newLatencyJSON(s.Sync), newLatencyJSON(s.Write),
		})
	}
	for _, c := range r.Checks {
		c = inFlags(c)
		j.Checks = append(j.Checks, checkJSON{c.ID, statuses[c.Status], c.Servers, c.Summary, c.Why, c.Advice})
	}
	return j
}

// newLatencyJSON returns nil for a latency that was not measured.
func newLatencyJSON(l operate.Latency) *latencyJSON {
	if l == (operate.Latency{}) {
		return nil
	}
	return &latencyJSON{inMillis(l.Median), inMillis(l.Worst)}
}
