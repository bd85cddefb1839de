// SPDX-License-Identifier: Apache-2.0

// Package orders is the test that the README shows.
package orders
