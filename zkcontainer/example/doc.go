// Package orders is the test that the README shows.
package orders
