// SPDX-License-Identifier: Apache-2.0

package main

// switches is what a mutated package gets in addition.
const switches = `package %s

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

var (
	mutation, _ = strconv.Atoi(os.Getenv("MUTATION"))
	mutations   sync.Map
)

func mutated(n int) bool {
	if mutation == 0 {
		noteMutation(n)
	}
	return n == mutation
}

func noteMutation(n int) {
	if _, before := mutations.LoadOrStore(n, true); before {
		return
	}
	if f, err := os.OpenFile(os.Getenv("REACHED"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		_, _ = fmt.Fprintln(f, n)
		_ = f.Close()
	}
}

func mutatedTo[T any](n int, is, was T) T {
	if mutated(n) {
		return is
	}
	return was
}

func mutatedClone[T any](n int, original T, clone func(T) T) T {
	if mutated(n) {
		return original
	}
	return clone(original)
}

func mutatedOp[T interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}](n int, was, is string, x, y T) T {
	op := was
	if mutated(n) {
		op = is
	}
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	default:
		return x / y
	}
}
`
