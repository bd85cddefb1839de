// SPDX-License-Identifier: Apache-2.0

// Package browser tests the page of `zklock web` in Chromium, from Debian's packages (see setup), driven by chromedp. If
// Chromium is not installed, the tests are skipped. `make screenshots` redraws the pictures in the documentation.
package browser
