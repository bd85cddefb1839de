// SPDX-License-Identifier: Apache-2.0

// Package crons runs the jobs of slots.Scheduled with the cron libraries whose schedules have Next.
// Package slots imports none of them, so this is a module of its own.
package crons
