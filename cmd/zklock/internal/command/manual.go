// SPDX-License-Identifier: Apache-2.0

package command

import "github.com/zklock-go/zklock/cmd/zklock/internal/cli"

// manual is what the manual page has in addition to the help.
var manual = cli.Manual{
	Examples: []cli.Entry{
		{Term: "zklock run --no-wait --every 5m --quiet -E 0 /cron/report -- /opt/report/run", Text: "In the crontab of every host: one of them runs the report, once in five minutes."},
		{Term: "zklock run --wait 30s --max-run 1h /locks/orders -- sh -c './migrate --fence \"$ZKLOCK_TOKEN\"'", Text: "Waits for at most 30 seconds, and ends a migration that takes more than an hour. The store rejects a smaller token."},
		{Term: "zklock run --once migration-7 /locks/migrations -- ./migrate", Text: "Runs a migration once, on whichever host."},
		{Term: "zklock elect /services/dispatcher -- ./dispatcher", Text: "One dispatcher is active, and the others are ready to take over."},
		{Term: "zklock ls -r /", Text: "Shows who holds and who waits, at all locks."},
		{Term: "zklock doctor /locks", Text: "Checks whether the servers are fit for locks."},
	},
	ExitStatus: []cli.Entry{
		{Term: "0", Text: "Success; also if the slot of --every or --once was already done."},
		{Term: "1", Text: "Any other failure: for example, there was no contender to evict, the host's clock is ahead of the servers', or a slot is too old. With doctor --strict: a check is a warning."},
		{Term: "2", Text: "doctor: a check failed. Otherwise zklock ran out of threads or memory when it started, and nothing was run."},
		{Term: "64", Text: "Usage error; also if the servers do not accept the ACL, or if the lock is held by a zklock that started this one."},
		{Term: "69", Text: "No server was reached in time, none answers any more, or the time was too short to acquire a free lock."},
		{Term: "70", Text: "The guardian process died, and the command was ended."},
		{Term: "73", Text: "The path has no room for another name of --once, and nothing was run."},
		{Term: "74", Text: "The command succeeded, but its slot may not have been marked."},
		{Term: "75", Text: "The lock is held (-E chooses another code); elect without a command: there is no leader."},
		{Term: "77", Text: "The servers refused permission, or require a login."},
		{Term: "79", Text: "The lock was lost, and the command was ended; or an operator evicted zklock while it waited."},
		{Term: "80", Text: "The lock was lost, and a process of the command is still running: standard error says which."},
		{Term: "81", Text: "ls --cycles found a cycle."},
		{Term: "124", Text: "The command, or a process that it left running, ran longer than --max-run and was ended."},
		{Term: "126, 127", Text: "The command cannot be executed, or does not exist."},
		{Term: "other codes", Text: "The command's own, or 128 plus the number of the signal that ended it."},
	},
	SeeAlso: "flock(1), timeout(1), crontab(5), systemd.timer(5)",
}
