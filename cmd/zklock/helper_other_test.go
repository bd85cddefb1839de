//go:build !linux && !windows

package main

func prepare() {}
