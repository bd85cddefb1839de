// SPDX-License-Identifier: Apache-2.0

// Package docs tests the documents of this repository: it runs every block of code that a reader can copy from them, and checks
// the names in them.
package docs

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// Block is a fenced block of a Markdown file.
type Block struct {
	File     string
	Line     int // the line of its fence
	Language string
	Text     string
}

func (b Block) String() string { return fmt.Sprintf("%s:%d", b.File, b.Line) }

// Blocks finds the fenced blocks of a document.
func Blocks(file, text string) []Block {
	var all []Block
	var open *Block
	for i, line := range strings.Split(text, "\n") {
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case !fence && open != nil:
			open.Text += line + "\n"
		case fence && open == nil:
			open = &Block{File: file, Line: i + 1, Language: language}
		case fence:
			all = append(all, *open)
			open = nil
		}
	}
	return all
}

// IsFile reports whether a Go block is a whole file and not a fragment of a function.
func (b Block) IsFile() bool { return strings.Contains("\n"+b.Text, "\npackage ") }

// IsTest reports whether a Go block is a test file.
func (b Block) IsTest() bool { return strings.Contains(b.Text, "\nfunc Test") }

// packages are the packages that fragments can use without importing them, as in documents.
var packages = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "uuid": "github.com/google/uuid", "fs": "io/fs", "net": "net", "http": "net/http", "time": "time", "tls": "crypto/tls", "x509": "crypto/x509", "sql": "database/sql",
	"zk": "github.com/go-zookeeper/zk", "lockprofile": "github.com/zklock-go/zklock/adapters/lockprofile", "shards": "github.com/zklock-go/zklock/shards", "slots": "github.com/zklock-go/zklock/slots", "zklock": "github.com/zklock-go/zklock", "zktest": "github.com/zklock-go/zklock/zktest",
	"kerberos": "github.com/zklock-go/zklock/adapters/kerberos",
	"cron":     "github.com/robfig/cron/v3",
	"zkgocron": "github.com/zklock-go/zklock/adapters/gocron", "gocron": "github.com/go-co-op/gocron/v2",
	"zkgoose": "github.com/zklock-go/zklock/adapters/goose", "goose": "github.com/pressly/goose/v3",
	"zkmigrate": "github.com/zklock-go/zklock/adapters/migrate", "migrate": "github.com/golang-migrate/migrate/v4", "database": "github.com/golang-migrate/migrate/v4/database",
	"zkcertmagic": "github.com/zklock-go/zklock/adapters/certmagic", "certmagic": "github.com/caddyserver/certmagic",
	"zkcaddy": "github.com/zklock-go/zklock/adapters/caddy", "caddy": "github.com/caddyserver/caddy/v2", "caddyconfig": "github.com/caddyserver/caddy/v2/caddyconfig",
	"zkotel": "github.com/zklock-go/zklock/adapters/otel", "otel": "go.opentelemetry.io/otel",
	"zkprometheus": "github.com/zklock-go/zklock/adapters/prometheus", "prometheus": "github.com/prometheus/client_golang/prometheus",
	"promhttp": "github.com/prometheus/client_golang/prometheus/promhttp",
	"sqlfence": "github.com/zklock-go/zklock/adapters/sqlfence", "readiness": "github.com/zklock-go/zklock/adapters/readiness",
	"leaderelection": "github.com/zklock-go/zklock/adapters/leaderelection", "manager": "sigs.k8s.io/controller-runtime/pkg/manager",
	"rest": "k8s.io/client-go/rest",
}

// given are the variables that fragments can use without declaring them.
const given = `ctx context.Context, client *zklock.Client, hold *zklock.Hold, servers []string, roots *x509.CertPool, db *sql.DB, migrations fs.FS`

// AsFile turns a fragment into a whole file that can be compiled.
func (b Block) AsFile() ([]byte, error) {
	// The inner block allows the fragment to declare the given variables as well.
	head := "package fragment\n\nfunc _(" + given + ") error {\n{\n"
	body := head + b.Text
	declared, err := declaredIn(body + "\n}\nreturn nil\n}\n")
	if err != nil {
		return nil, fmt.Errorf("%v: %w", b, err)
	}
	var file bytes.Buffer
	file.WriteString("package fragment\n\nimport (\n")
	for _, name := range importsOf(body) {
		fmt.Fprintf(&file, "%s %q\n", name, packages[name])
	}
	file.WriteString(")\n\n" + strings.TrimPrefix(body, "package fragment\n\n"))
	for _, name := range declared {
		fmt.Fprintf(&file, "_ = %s\n", name)
	}
	file.WriteString("}\nreturn nil\n}\n")
	return format.Source(file.Bytes())
}

var qualifier = regexp.MustCompile(`\b([a-z0-9]+)\.[A-Z]`)

func importsOf(text string) []string {
	var names []string
	for _, m := range qualifier.FindAllStringSubmatch(text, -1) {
		if packages[m[1]] != "" && !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return names
}

// declaredIn lists the variables that the first block of a function declares.
func declaredIn(source string) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, 0)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, statement := range file.Decls[0].(*ast.FuncDecl).Body.List[0].(*ast.BlockStmt).List {
		assign, ok := statement.(*ast.AssignStmt)
		if !ok || assign.Tok != token.DEFINE {
			continue
		}
		for _, left := range assign.Lhs {
			if name := left.(*ast.Ident).Name; name != "_" {
				names = append(names, name)
			}
		}
	}
	return names, nil
}
