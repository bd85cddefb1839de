// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package proc

func sharesGroup() bool { return true }

func leadsSession() bool { return false }
