// SPDX-License-Identifier: Apache-2.0

package main

// What happens to a mutation.
const (
	noticedByOwn      = "noticed by the package's own tests"
	noticedByPromises = "noticed by promises"
	unnoticed         = "not noticed"
	unreached         = "not reached"
)

// A result is what happened to a mutation.
type result struct {
	mutation
	outcome string
}
