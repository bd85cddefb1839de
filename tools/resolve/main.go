// SPDX-License-Identifier: Apache-2.0

// Command resolve checks what a first release needs: that each published module can be downloaded by its tag alone. It makes a
// module proxy of files from the commit that is checked out, with every module at one version and without replace directives, and
// finds every package of a program for each module through it.
//
//	go run -C tools ./resolve v0.1.0
package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const library = "github.com/zklock-go/zklock"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: resolve VERSION")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "resolve:", err)
		os.Exit(1)
	}
}

func run(version string) error {
	root, err := output("", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	root = strings.TrimSpace(root)
	list, err := output(root, "git", "ls-files")
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "resolve")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	files := strings.Fields(list)
	modules := modulesOf(files)
	var errs []error
	for _, dir := range published(modules) {
		errs = append(errs, publish(filepath.Join(work, "proxy"), root, dir, version, files, modules))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, dir := range published(modules) {
		path := module(dir)
		if out, err := resolve(filepath.Join(work, "program"), filepath.Join(work, "proxy"), path, version); err != nil {
			errs = append(errs, fmt.Errorf("%s@%s: %w\n%s", path, version, err, out))
			continue
		}
		fmt.Println(path + "@" + version)
	}
	return errors.Join(errs...)
}

// modulesOf returns the directories that have a go.mod.
func modulesOf(files []string) (dirs []string) {
	for _, f := range files {
		if filepath.Base(f) == "go.mod" {
			dirs = append(dirs, filepath.Dir(f))
		}
	}
	return dirs
}

// published returns the modules that users import.
func published(modules []string) []string {
	return slices.DeleteFunc(slices.Clone(modules), func(dir string) bool {
		adapter := filepath.Dir(dir) == "adapters"
		return !adapter && dir != "zkcontainer" && dir != "."
	})
}

func module(dir string) string {
	if dir == "." {
		return library
	}
	return library + "/" + dir
}

// owner returns the module that a file belongs to.
func owner(file string, modules []string) string {
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		if dir == "." || slices.Contains(modules, dir) {
			return dir
		}
	}
}

var (
	replaced = regexp.MustCompile(`(?m)^replace .*\n`)
	required = regexp.MustCompile(regexp.QuoteMeta(library) + `(/\S+)? v0\.0\.0\b`)
)

// publish writes a module's files into the proxy, as the go command would download them.
func publish(proxy, root, dir, version string, files, modules []string) (err error) {
	at := filepath.Join(proxy, module(dir), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(root, dir, "go.mod"))
	if err != nil {
		return err
	}
	mod = required.ReplaceAll(replaced.ReplaceAll(mod, nil), []byte(library+"$1 "+version))
	archive, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	z := zip.NewWriter(archive)
	for _, file := range files {
		if owner(file, modules) != dir {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		if name == "go.mod" {
			content = mod
		}
		w, err := z.Create(module(dir) + "@" + version + "/" + filepath.ToSlash(name))
		if err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	return errors.Join(z.Close(),
		os.WriteFile(filepath.Join(at, version+".mod"), mod, 0o644),
		os.WriteFile(filepath.Join(at, version+".info"), []byte(`{"Version":"`+version+`"}`), 0o644),
		os.WriteFile(filepath.Join(at, "list"), []byte(version+"\n"), 0o644))
}

// resolve finds every package of a program that imports a module at a version, with a module cache of its own for our modules.
func resolve(dir, proxy, path, version string) (string, error) {
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	others, err := output("", "go", "env", "GOPROXY")
	if err != nil {
		return "", err
	}
	cached, err := output("", "go", "env", "GOMODCACHE")
	if err != nil {
		return "", err
	}
	env := append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GONOSUMDB="+library+","+library+"/*", "GOMODCACHE="+dir+"-cache",
		"GOPROXY=file://"+proxy+",file://"+strings.TrimSpace(cached)+"/cache/download,"+strings.TrimSpace(others))
	program := "package main\n\nimport _ \"" + path + "\"\n\nfunc main() {}\n"
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o644); err != nil {
		return "", err
	}
	var all strings.Builder
	for _, args := range [][]string{{"mod", "init", "example.org/program"}, {"get", path + "@" + version}, {"list", "-deps", "."}} {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, &all, &all
		if err := cmd.Run(); err != nil {
			return all.String(), err
		}
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err == nil && strings.Contains(string(mod), "replace") {
		err = errors.New("it needs a replace directive")
	}
	return all.String(), err
}

func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var said strings.Builder
	cmd.Stderr = io.Writer(&said)
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, said.String())
	}
	return string(out), err
}
