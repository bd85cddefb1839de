// Command caddy is Caddy with its standard modules and caddy.storage.zklock.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/zklock-go/zklock/adapters/caddy"
)

func main() { caddycmd.Main() }
