// Package browser tests the page of `zklock web` in a real browser: Chromium, from Debian's packages (see setup), driven by
// chromedp. Where there is none, the tests are skipped. `make screenshots` draws the pictures of the documents anew.
package browser
