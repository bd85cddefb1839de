// SPDX-License-Identifier: Apache-2.0

// Package zkcaddy is a storage module for Caddy, caddy.storage.zklock. It makes a fleet of Caddy
// servers obtain each certificate only once: it provides the locks of another storage module with
// zklock. The certificates stay in that storage. Import the package for its side effect.
package zkcaddy

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/certmagic"
)

func init() { caddy.RegisterModule(Storage{}) }

// Storage is the module's configuration. The locks of the storage module in StorageRaw are replaced.
type Storage struct {
	Connection

	// StorageRaw is the storage module for the certificates. All hosts must share what is in it, so it has no default.
	StorageRaw json.RawMessage `json:"storage,omitempty" caddy:"namespace=caddy.storage inline_key=module"`
	// Dir is the path below which the locks' nodes are. Default /caddy.
	Dir string `json:"dir,omitempty"`

	certificates certmagic.Storage
	session      *session // nil unless Provision has acquired it
	key          string   // of session, in sessions
}

var (
	_ caddy.Module           = Storage{}
	_ caddy.Provisioner      = (*Storage)(nil)
	_ caddy.CleanerUpper     = (*Storage)(nil)
	_ caddy.StorageConverter = (*Storage)(nil)
	_ caddyfile.Unmarshaler  = (*Storage)(nil)
)

// CaddyModule returns the module's ID and constructor.
func (Storage) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.storage.zklock", New: func() caddy.Module { return new(Storage) }}
}

// Provision loads the storage module and connects to ZooKeeper. If no server can be reached within a few
// seconds, Provision returns nil, and the client continues to connect: Caddy can serve the certificates
// that it has, and attempts to obtain others wait. An invalid configuration or a refused credential is
// an error.
func (s *Storage) Provision(ctx caddy.Context) error {
	if s.StorageRaw == nil {
		return errors.New("zklock: a storage for the certificates is required")
	}
	module, err := ctx.LoadModule(s, "StorageRaw")
	if err != nil {
		return fmt.Errorf("zklock: load the storage for the certificates: %w", err)
	}
	if s.certificates, err = module.(caddy.StorageConverter).CertMagicStorage(); err != nil {
		return fmt.Errorf("zklock: create the storage for the certificates: %w", err)
	}
	if s.Dir == "" {
		s.Dir = "/caddy"
	}
	if s.session, s.key, err = acquireSession(s.Connection.expanded()); err != nil {
		return err
	}
	return s.session.await(ctx)
}

// Cleanup closes the client if no other configuration uses it.
func (s *Storage) Cleanup() error {
	if s.session == nil {
		return nil
	}
	s.session = nil
	_, err := sessions.Delete(s.key)
	return err
}

// CertMagicStorage returns the storage for Caddy to use.
func (s *Storage) CertMagicStorage() (certmagic.Storage, error) {
	return newLocks(s.certificates, s.session, s.Dir), nil
}

// UnmarshalCaddyfile reads the module's configuration:
//
//	storage zklock {
//		servers         <host:port>...
//		dir             <path>
//		session_timeout <duration>
//		user            <name> <password>
//		tls {
//			ca   <file>
//			cert <file>
//			key  <file>
//		}
//		storage <module> ...
//	}
func (s *Storage) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the module's name
	if d.NextArg() {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if err := s.unmarshalOption(d); err != nil {
			return err
		}
	}
	return nil
}

func (s *Storage) unmarshalOption(d *caddyfile.Dispenser) error {
	switch option := d.Val(); option {
	case "servers":
		s.Servers = append(s.Servers, d.RemainingArgs()...)
		return nil
	case "dir":
		return oneArg(d, &s.Dir)
	case "session_timeout":
		var text string
		if err := oneArg(d, &text); err != nil {
			return err
		}
		timeout, err := caddy.ParseDuration(text)
		if err != nil {
			return d.Errf("session_timeout: %v", err)
		}
		s.SessionTimeout = caddy.Duration(timeout)
		return nil
	case "user":
		if !d.Args(&s.User, &s.Password) || d.NextArg() {
			return d.ArgErr()
		}
		return nil
	case "tls":
		s.TLS = new(TLS)
		return s.TLS.unmarshal(d)
	case "storage":
		return s.unmarshalStorage(d)
	default:
		return d.Errf("unrecognized option %q", option)
	}
}

func (s *Storage) unmarshalStorage(d *caddyfile.Dispenser) error {
	if !d.NextArg() {
		return d.ArgErr()
	}
	name := d.Val()
	module, err := caddyfile.UnmarshalModule(d, "caddy.storage."+name)
	if err != nil {
		return err
	}
	if _, ok := module.(caddy.StorageConverter); !ok {
		return d.Errf("module %q is no storage", name)
	}
	s.StorageRaw = caddyconfig.JSONModuleObject(module, "module", name, nil)
	return nil
}

func (t *TLS) unmarshal(d *caddyfile.Dispenser) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		files := map[string]*string{"ca": &t.CA, "cert": &t.Cert, "key": &t.Key}
		file := files[d.Val()]
		if file == nil {
			return d.Errf("unrecognized option %q of tls", d.Val())
		}
		if err := oneArg(d, file); err != nil {
			return err
		}
	}
	return nil
}

// oneArg reads the only argument of an option.
func oneArg(d *caddyfile.Dispenser, into *string) error {
	if !d.AllArgs(into) {
		return d.ArgErr()
	}
	return nil
}
