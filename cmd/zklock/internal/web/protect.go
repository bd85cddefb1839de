// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// policy lets the page use its own files and nothing else. If text from ZooKeeper ended up as markup, it would have no effect,
// and trusted types make the browser reject assigning it as markup in the first place.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// bodyTime limits how long reading a request's body may take. A limit on the whole request (http.Server.ReadTimeout) would
// also end streams.
const bodyTime = 10 * time.Second

// protect sets the security headers. On loopback, it rejects requests whose Host is neither a name of this machine nor that of
// the public address, if there is one.
func protect(onLoopback bool, public *url.URL, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
		} {
			w.Header().Set(name, value)
		}
		if r.ContentLength != 0 {
			// Without a deadline, the server would wait for the rest of a body for as long as the connection is open.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
		}
		if onLoopback && !isLocal(r.Host) && !(public != nil && strings.EqualFold(r.Host, public.Host)) {
			http.Error(w, "this page is only available on this machine: use http://localhost, or zklock web --public-url behind a proxy", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLocal reports whether a host, with or without a port, names this machine. A name in someone else's domain could resolve
// to this machine (DNS rebinding), and a page of theirs would then count as ours.
func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
