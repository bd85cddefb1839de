package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// A mutation is a small change of a function: another expression in the place of one, or a statement
// left out.
type mutation struct {
	Number   int
	File     string
	Function string
	Line     int
	Was, Is  string // Is is empty for a statement that is left out
}

// String returns what identifies the mutation while the code around it changes.
func (m mutation) String() string {
	switch {
	case m.Is == "":
		return fmt.Sprintf("%s: without `%s`", m.Function, m.Was)
	case strings.HasPrefix(m.Is, "return"):
		return fmt.Sprintf("%s: `%s` before `%.60s`", m.Function, m.Is, m.Was)
	}
	return fmt.Sprintf("%s: `%s` in place of `%s`", m.Function, m.Is, m.Was)
}

// A source is a file with all its mutations. The text that it is replaced by has each of them behind
// a switch, so that one build serves for all.
type source struct {
	name  string
	text  string
	fset  *token.FileSet
	funcs []*ast.FuncDecl
	fn    *ast.FuncDecl // the one that is visited

	planted bool // with the defects that only make planted takes
	next    int  // number
	all     []mutation
	swaps   map[ast.Node][]swap
}

// A swap is a mutation of a node: another text in its place, behind a switch.
type swap struct {
	mutation
	form form
}

// A form is how a mutation stands behind its switch.
type form int

const (
	condition  form = iota // the node is a bool
	expression             // of any other type
	leftOut                // the statement is not carried out
	before                 // the text is carried out before the statement
)

// mutate returns the text of a file with its mutations behind switches, which are numbered from first
// on, and the mutations.
func mutate(name, text string, first int) (string, []mutation, error) {
	s := &source{name: name, text: text, next: first}
	err := s.collect()
	return s.rewritten(nil), s.all, err
}

// collect finds the mutations.
func (s *source) collect() error {
	s.fset, s.swaps = token.NewFileSet(), map[ast.Node][]swap{}
	file, err := parser.ParseFile(s.fset, s.name, s.text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			s.funcs, s.fn = append(s.funcs, fn), fn
			ast.Inspect(fn.Body, s.visit)
			if s.planted {
				s.returnEarly()
			}
		}
	}
	return nil
}

// rewritten returns the text with these mutations, nil for all, behind switches.
func (s *source) rewritten(chosen map[int]bool) string {
	if chosen != nil {
		for n, list := range s.swaps {
			s.swaps[n] = slices.DeleteFunc(list, func(w swap) bool { return !chosen[w.Number] })
		}
	}
	var edits []edit
	for _, fn := range s.funcs {
		edits = append(edits, edit{s.at(fn.Body.Pos()), s.at(fn.Body.End()), s.print(fn.Body)})
	}
	return apply(s.text, edits)
}

func (s *source) at(p token.Pos) int { return s.fset.Position(p).Offset }

// original returns the text of a node.
func (s *source) original(n ast.Node) string { return s.text[s.at(n.Pos()):s.at(n.End())] }

// visit collects the mutations of a node.
func (s *source) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		s.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			s.add(n, s.original(n.X), condition)
		}
	case *ast.IfStmt:
		if s.planted { // a condition is dropped
			s.add(n.Cond, "true", condition)
			s.add(n.Cond, "false", condition)
		}
	case *ast.ReturnStmt:
		for _, r := range n.Results {
			if id, ok := r.(*ast.Ident); ok && (id.Name == "true" || id.Name == "false") {
				s.add(r, map[string]string{"true": "false", "false": "true"}[id.Name], condition)
			} else if ok && id.Name == "err" && s.planted { // an error is swallowed
				s.add(r, "nil", expression)
			}
		}
	case *ast.BlockStmt:
		s.statements(n.List)
	case *ast.CaseClause:
		s.statements(n.Body)
	case *ast.CommClause:
		s.statements(n.Body)
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Version" {
			s.anyVersion(n.Value)
		}
	case *ast.CallExpr:
		s.call(n)
	case *ast.SelectorExpr:
		other := map[string]string{"Mono": "Wall", "Wall": "Mono"}[n.Sel.Name]
		if other != "" {
			s.add(n, s.original(n.X)+"."+other, expression)
		}
	}
	return true
}

// operators are what an operator is replaced by.
var operators = map[token.Token][]string{
	token.LSS: {"<=", ">="}, token.LEQ: {"<", ">"}, token.GTR: {">=", "<="}, token.GEQ: {">", "<"}, token.EQL: {"!="}, token.NEQ: {"=="},
}

func (s *source) binary(n *ast.BinaryExpr) {
	x, y := s.original(n.X), s.original(n.Y)
	for _, op := range operators[n.Op] {
		s.add(n, x+" "+op+" "+y, condition)
	}
	if n.Op == token.LAND || n.Op == token.LOR { // one side alone
		s.add(n, x, condition)
		s.add(n, y, condition)
	}
}

// statements leaves out each statement that nothing else needs to compile.
func (s *source) statements(list []ast.Stmt) {
	for _, st := range list {
		switch st := st.(type) {
		case *ast.ExprStmt:
			if call, ok := st.X.(*ast.CallExpr); ok && s.original(call.Fun) != "panic" {
				s.add(st, "", leftOut)
			}
		case *ast.AssignStmt:
			if st.Tok != token.DEFINE {
				s.add(st, "", leftOut)
			}
		case *ast.IncDecStmt, *ast.DeferStmt, *ast.SendStmt:
			s.add(st, "", leftOut)
		}
	}
}

// returnEarly leaves the function with zeros before each of its statements but the first, which has its own operators.
func (s *source) returnEarly() {
	var zeros []string
	if results := s.fn.Type.Results; results != nil {
		for _, f := range results.List {
			zeros = append(zeros, slices.Repeat([]string{"*new(" + s.original(f.Type) + ")"}, max(1, len(f.Names)))...)
		}
	}
	for i, st := range s.fn.Body.List {
		if _, last := st.(*ast.ReturnStmt); i > 0 && !last {
			s.add(st, strings.TrimSpace("return "+strings.Join(zeros, ", ")), before)
		}
	}
}

// call mutates the arguments that decide here: versions, and times that are taken for one another.
func (s *source) call(n *ast.CallExpr) {
	if sel, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"deleteVersion", "set"}, sel.Sel.Name) && len(n.Args) > 3 {
		s.anyVersion(n.Args[len(n.Args)-1])
	}
	for _, arg := range n.Args {
		if id, ok := arg.(*ast.Ident); ok {
			if other := s.twin(id.Name); other != "" {
				s.add(id, other, expression)
			}
		}
	}
}

// anyVersion has a write go through whatever was written before.
func (s *source) anyVersion(version ast.Expr) {
	if s.original(version) != "-1" {
		s.add(version, "-1", expression)
	}
}

// twin returns the parameter that could be taken for that one: when a request was sent, and when it
// was answered.
func (s *source) twin(name string) string {
	others := map[string][]string{"sent": {"got", "answered", "received"}, "got": {"sent"}, "answered": {"sent"}, "received": {"sent"}}[name]
	for _, p := range s.fn.Type.Params.List {
		for _, id := range p.Names {
			if slices.Contains(others, id.Name) {
				return id.Name
			}
		}
	}
	return ""
}

func (s *source) add(n ast.Node, is string, form form) {
	m := mutation{Number: s.next, File: s.name, Function: s.function(), Line: s.fset.Position(n.Pos()).Line, Was: oneLine(s.original(n)), Is: oneLine(is)}
	s.next++
	s.all = append(s.all, m)
	m.Is = is
	s.swaps[n] = append(s.swaps[n], swap{m, form})
}

// function returns the name of the function with its receiver's type.
func (s *source) function() string {
	if s.fn.Recv == nil {
		return s.fn.Name.Name
	}
	return strings.TrimPrefix(s.original(s.fn.Recv.List[0].Type), "*") + "." + s.fn.Name.Name
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// print returns the text of a node with all mutations in it.
func (s *source) print(n ast.Node) string {
	var edits []edit
	ast.Inspect(n, func(x ast.Node) bool {
		if x == nil || x == n || len(s.swaps[x]) == 0 {
			return true
		}
		edits = append(edits, edit{s.at(x.Pos()) - s.at(n.Pos()), s.at(x.End()) - s.at(n.Pos()), s.print(x)})
		return false
	})
	text := apply(s.original(n), edits)
	for _, w := range s.swaps[n] {
		switch w.form {
		case condition:
			text = fmt.Sprintf("(mutated(%d) && (%s) || !mutated(%d) && (%s))", w.Number, w.Is, w.Number, text)
		case expression:
			text = fmt.Sprintf("mutatedTo(%d, %s, %s)", w.Number, w.Is, text)
		case leftOut:
			text = fmt.Sprintf("if !mutated(%d) { %s }", w.Number, text)
		case before:
			text = fmt.Sprintf("if mutated(%d) { %s }; %s", w.Number, w.Is, text)
		}
	}
	return text
}

// An edit replaces the bytes from one offset to another.
type edit struct {
	from, to int
	text     string
}

func apply(text string, edits []edit) string {
	slices.SortFunc(edits, func(a, b edit) int { return b.from - a.from })
	for _, e := range edits {
		text = text[:e.from] + e.text + text[e.to:]
	}
	return text
}
