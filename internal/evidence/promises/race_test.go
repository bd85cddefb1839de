// SPDX-License-Identifier: Apache-2.0

//go:build race

package promises_test

const raceDetector = true
