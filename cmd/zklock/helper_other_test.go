//go:build !linux

package main

func prepare() {}
