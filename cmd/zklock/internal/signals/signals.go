// SPDX-License-Identifier: Apache-2.0

// Package signals says what a signal means to zklock, to its guardian and to the command.
package signals
