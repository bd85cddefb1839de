package web

import (
	"net"
	"net/http"
	"strings"
	"time"
)

// policy lets the page use its own files and nothing else. Text from ZooKeeper that came to stand as markup would do
// nothing, and the page never puts it there: trusted types make the browser refuse that.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// bodyTime is how long a request's body may take. A time for all of reading (http.Server.ReadTimeout) would end streams as well.
const bodyTime = 10 * time.Second

// protect sets what browsers are to enforce. On loopback, it refuses requests under names that are not this machine's.
func protect(onLoopback bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
		} {
			w.Header().Set(name, value)
		}
		if r.ContentLength != 0 {
			// Without it the server would wait for the rest of a body for as long as the connection stands.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
		}
		if onLoopback && !isLocal(r.Host) {
			http.Error(w, "this page is for this machine: use http://localhost", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLocal reports whether a host, with or without a port, is this machine by its name. A name that somebody else gives out
// could be made to lead here, and a page of theirs would then count as ours.
func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
