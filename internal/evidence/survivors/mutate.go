// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

// A mutation is a small change of a function.
type mutation struct {
	Number   int
	File     string
	Function string
	Line     int
	What     string // the change; it is the same while the code around it changes
}

// String returns the mutation without its file.
func (m mutation) String() string { return m.Function + ": " + m.What }

// A source is a file with its mutations. Its rewritten text has each of them behind a switch, so that one build serves for all.
type source struct {
	name  string
	text  string
	fset  *token.FileSet
	file  *ast.File
	types map[ast.Expr]types.TypeAndValue
	funcs []*ast.FuncDecl
	fn    *ast.FuncDecl // the visited function

	next  int // number
	all   []mutation
	swaps map[ast.Node][]swap
	named map[string]int // the mutations by their names
}

// A swap is the code of a mutation at one node.
type swap struct {
	number int
	is     string
	form   form
}

// A form says what a switch does with its node.
type form int

const (
	condition  form = iota // replaces an expression of type bool
	expression             // replaces an expression of any other type, if its evaluation has no effect
	operation              // replaces the operator of a binary expression
	uncloned               // takes the argument of a call instead of its result
	leftOut                // leaves the statement out
	before                 // carries the text out before the statement
	after                  // carries the text out after the statement
)

// collect finds the mutations.
func (s *source) collect() {
	s.swaps, s.named = map[ast.Node][]swap{}, map[string]int{}
	for _, d := range s.file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		s.fn = fn
		s.funcs = append(s.funcs, fn)
		ast.Inspect(fn.Body, s.visit)
	}
}

// rewritten returns the text with all mutations behind switches.
func (s *source) rewritten() string {
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
	case *ast.GenDecl:
		return n.Tok != token.CONST
	case *ast.BinaryExpr:
		s.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			s.replace(n, s.original(n.X), condition)
		}
	case *ast.IfStmt:
		s.negate(n.Cond)
	case *ast.ForStmt:
		s.negate(n.Cond)
	case *ast.ReturnStmt:
		s.returned(n)
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
			s.replace(n, s.original(n.X)+"."+other, expression)
		}
	}
	return true
}

// operators are what an operator is replaced by.
var operators = map[token.Token][]string{
	token.LSS: {"<=", ">="}, token.LEQ: {"<", ">"}, token.GTR: {">=", "<="}, token.GEQ: {">", "<"}, token.EQL: {"!="}, token.NEQ: {"=="},
}

// opposites are the operators of arithmetic.
var opposites = map[token.Token]string{token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*"}

func (s *source) binary(n *ast.BinaryExpr) {
	x, y := s.original(n.X), s.original(n.Y)
	for _, op := range operators[n.Op] {
		s.replace(n, x+" "+op+" "+y, condition)
	}
	if n.Op == token.LAND || n.Op == token.LOR { // one side alone
		s.replace(n, x, condition)
		s.replace(n, y, condition)
	}
	if op := opposites[n.Op]; op != "" && s.isNumber(n) {
		s.addTo(s.record(n, inPlace(x+" "+op+" "+y, s.original(n))), n, op, operation)
	}
}

// isNumber reports whether the value is a number that is not constant.
func (s *source) isNumber(e ast.Expr) bool { return s.types[e].Value == nil && s.isNumeric(e) }

// isNumeric reports whether the value is a number, which may be constant.
func (s *source) isNumeric(e ast.Expr) bool {
	t, known := s.types[e]
	if !known {
		return false
	}
	basic, ok := t.Type.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsNumeric != 0
}

// negate negates a condition that has no operator of its own.
func (s *source) negate(cond ast.Expr) {
	switch cond.(type) {
	case *ast.CallExpr, *ast.Ident, *ast.SelectorExpr:
		s.replace(cond, "!"+s.original(cond), condition)
	}
}

// returned changes the constants and errors that a statement returns.
func (s *source) returned(n *ast.ReturnStmt) {
	for _, r := range n.Results {
		id, ok := r.(*ast.Ident)
		switch {
		case !ok:
		case id.Name == "true":
			s.replace(r, "false", condition)
		case id.Name == "false":
			s.replace(r, "true", condition)
		case id.Name == "err": // the error is swallowed
			s.replace(r, "nil", expression)
		}
	}
}

// statements leaves out each statement that no other needs to compile, and changes their order.
func (s *source) statements(list []ast.Stmt) {
	for i, st := range list {
		if isMovable(st) && !s.isLog(st) {
			s.addTo(s.record(st, "without `"+oneLine(s.original(st))+"`"), st, "", leftOut)
			s.hoist(list, i)
		}
		if i > 0 {
			s.sink(list[i-1], st)
		}
	}
}

// isMovable reports whether a statement declares nothing, and the next statement is reached after it.
func isMovable(st ast.Stmt) bool {
	switch st := st.(type) {
	case *ast.ExprStmt:
		call, ok := st.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		id, ok := call.Fun.(*ast.Ident)
		return !ok || id.Name != "panic"
	case *ast.AssignStmt:
		return st.Tok != token.DEFINE
	case *ast.IncDecStmt, *ast.DeferStmt, *ast.SendStmt, *ast.GoStmt:
		return true
	}
	return false
}

var logCall = regexp.MustCompile(`^(\w+\.)*[lL]og\.(Debug|Info|Warn|Error)\(`)

func (s *source) isLog(st ast.Stmt) bool { return logCall.MatchString(s.original(st)) }

// hoist moves a statement before its neighbor, and, if it is a call or a send, as far up in its block as its variables permit.
func (s *source) hoist(list []ast.Stmt, i int) {
	top := i
	for top > 0 && s.mayPass(list[top-1], list[i]) {
		top--
	}
	if top == i {
		return
	}
	s.move(list[i], list[i-1], before)
	if _, call := list[i].(*ast.ExprStmt); top < i-1 && (call || isSend(list[i])) {
		s.move(list[i], list[top], before)
	}
}

// sink moves a statement after its neighbor if the neighbor declares variables and cannot move itself.
func (s *source) sink(st, next ast.Stmt) {
	if define, ok := next.(*ast.AssignStmt); ok && define.Tok == token.DEFINE && isMovable(st) && !s.isLog(st) && s.mayPass(st, next) {
		s.move(st, next, after)
	}
}

func (s *source) move(st, to ast.Stmt, form form) {
	where := map[bool]string{true: "before", false: "after"}[form == before]
	number := s.record(st, fmt.Sprintf("`%s` moved %s `%.80s`", oneLine(s.original(st)), where, oneLine(s.original(to))))
	s.addTo(number, st, "", leftOut)
	s.addTo(number, to, s.original(st), form)
}

func isSend(st ast.Stmt) bool {
	_, ok := st.(*ast.SendStmt)
	return ok
}

// mayPass reports whether a statement can be carried out before the statement above it, and whether that can make a difference.
func (s *source) mayPass(above, st ast.Stmt) bool {
	if isDefer(above) || isDefer(st) || s.isLog(above) || !hasEffect(above) && !hasEffect(st) {
		return false
	}
	for name := range declared(above) {
		if uses(st, name) {
			return false
		}
	}
	switch above := above.(type) {
	case *ast.DeclStmt:
		return false
	case *ast.BranchStmt, *ast.ReturnStmt, *ast.LabeledStmt:
		return false
	case *ast.AssignStmt:
		return above.Tok != token.DEFINE || hasEffect(above)
	}
	return true
}

func isDefer(st ast.Stmt) bool {
	_, ok := st.(*ast.DeferStmt)
	return ok
}

// hasEffect reports whether a statement does more than to assign values: it calls, sends, receives, or leaves the block.
func hasEffect(st ast.Stmt) (yes bool) {
	ast.Inspect(st, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr, *ast.SendStmt, *ast.ReturnStmt, *ast.BranchStmt:
			yes = true
		case *ast.UnaryExpr:
			yes = yes || n.Op == token.ARROW
		}
		return true
	})
	return yes
}

// declared returns the variables that a statement declares or assigns.
func declared(st ast.Stmt) map[string]bool {
	names := map[string]bool{}
	if a, ok := st.(*ast.AssignStmt); ok {
		for _, e := range a.Lhs {
			if id, ok := e.(*ast.Ident); ok && id.Name != "_" {
				names[id.Name] = true
			}
		}
	}
	return names
}

func uses(n ast.Node, name string) (yes bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		yes = yes || ok && id.Name == name
		return true
	})
	return yes
}

// call mutates the arguments that decide here: versions, and times that can be confused. It also takes the original in place of a copy.
func (s *source) call(n *ast.CallExpr) {
	if sel, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"deleteVersion", "set"}, sel.Sel.Name) && len(n.Args) > 3 {
		s.anyVersion(n.Args[len(n.Args)-1])
	}
	for _, arg := range n.Args {
		if id, ok := arg.(*ast.Ident); ok {
			if other := s.twin(id.Name); other != "" {
				s.replace(id, other, expression)
			}
		}
	}
	switch fun := s.original(n.Fun); {
	case slices.Contains([]string{"slices.Clone", "bytes.Clone", "maps.Clone"}, fun) && len(n.Args) == 1:
		s.addTo(s.record(n, inPlace(s.original(n.Args[0]), s.original(n))), n, fun, uncloned)
	case fun == "append" && len(n.Args) == 2 && n.Ellipsis.IsValid() && isEmptySlice(n.Args[0]) && isPure(n.Args[1]):
		s.replace(n, s.original(n.Args[1]), expression)
	case strings.HasSuffix(fun, ".Clone") && len(n.Args) == 0 && isPure(n.Fun):
		s.replace(n, strings.TrimSuffix(fun, ".Clone"), expression)
	}
}

// isEmptySlice reports whether an expression is `[]T(nil)` or `[]T{}`.
func isEmptySlice(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CompositeLit:
		_, ok := e.Type.(*ast.ArrayType)
		return ok && len(e.Elts) == 0
	case *ast.CallExpr:
		_, ok := e.Fun.(*ast.ArrayType)
		return ok
	}
	return false
}

// isPure reports whether an expression can be evaluated twice.
func isPure(e ast.Expr) bool {
	pure := true
	ast.Inspect(e, func(n ast.Node) bool {
		_, call := n.(*ast.CallExpr)
		pure = pure && !call
		return true
	})
	return pure
}

// anyVersion makes a write succeed whatever was written before. It leaves arguments that are no numbers as they are.
func (s *source) anyVersion(version ast.Expr) {
	if s.original(version) != "-1" && s.isNumeric(version) {
		s.replace(version, "-1", expression)
	}
}

// twin returns the parameter that can be confused with this one: when a request was sent, and when it was answered.
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

// replace adds a mutation with another expression in the place of one.
func (s *source) replace(n ast.Node, is string, form form) {
	s.addTo(s.record(n, inPlace(is, s.original(n))), n, is, form)
}

func inPlace(is, was string) string {
	return fmt.Sprintf("`%s` in place of `%s`", oneLine(is), oneLine(was))
}

// record adds a mutation and returns its number.
func (s *source) record(n ast.Node, what string) int {
	m := mutation{Number: s.next, File: s.name, Function: s.function(), Line: s.fset.Position(n.Pos()).Line, What: what}
	s.named[m.String()]++
	if nth := s.named[m.String()]; nth > 1 {
		m.What += fmt.Sprintf(" [%d]", nth)
	}
	s.next++
	s.all = append(s.all, m)
	return m.Number
}

func (s *source) addTo(number int, n ast.Node, is string, form form) {
	s.swaps[n] = append(s.swaps[n], swap{number, is, form})
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
	swaps := slices.Clone(s.swaps[n])
	slices.SortStableFunc(swaps, func(a, b swap) int { return int(a.form - b.form) })
	for _, w := range swaps {
		text = s.behindSwitch(n, w, text)
	}
	return text
}

func (s *source) behindSwitch(n ast.Node, w swap, text string) string {
	switch w.form {
	case condition:
		return fmt.Sprintf("(mutated(%d) && (%s) || !mutated(%d) && (%s))", w.number, w.is, w.number, text)
	case expression:
		return fmt.Sprintf("mutatedTo(%d, %s, %s)", w.number, w.is, text)
	case operation:
		n := n.(*ast.BinaryExpr)
		return fmt.Sprintf("mutatedOp(%d, %q, %q, %s, %s)", w.number, n.Op, w.is, s.print(n.X), s.print(n.Y))
	case uncloned:
		return fmt.Sprintf("mutatedClone(%d, %s, %s)", w.number, s.print(n.(*ast.CallExpr).Args[0]), w.is)
	case leftOut:
		return fmt.Sprintf("if !mutated(%d) { %s }", w.number, text)
	case before:
		return fmt.Sprintf("if mutated(%d) { %s }; %s", w.number, w.is, text)
	default: // after
		return fmt.Sprintf("%s; if mutated(%d) { %s }", text, w.number, w.is)
	}
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
