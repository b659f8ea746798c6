package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
	"testing"
)

// exportedVariables are those besides errors that there are, with the reason.
var exportedVariables = map[string]string{
	"rewrite.Empty":    "a style without state, which a constant cannot be",
	"rewrite.Text":     "the same",
	"rewrite.Markdown": "the same",
	"rewrite.HTML":     "the same",
}

// TestNoMutableVariables: what stands at package level is as good as constant.
func TestNoMutableVariables(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	packages := map[string][]*ast.File{}
	forEachFile(t, fset, func(pkg string, file *ast.File, name string) {
		if !strings.HasSuffix(name, "_test.go") {
			key := pkg + " " + file.Name.Name
			packages[key] = append(packages[key], file)
		}
	})
	for key, files := range packages {
		pkg, _, _ := strings.Cut(key, " ")
		for _, fault := range variableFaults(fset, pkg, files) {
			t.Error(fault)
		}
	}
}

func TestVariableFaults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ src, fault string }{
		{`var n int; func f() { n = 1 }`, "n is assigned"},
		{`var n int; func f() { n++ }`, "n is assigned"},
		{`var n int; func f() { (n) += 2 }`, "n is assigned"},
		{`var n int; func f() *int { return &n }`, "n has its address taken"},
		{`var a [3]int; func f() { a[1] = 1 }`, "a is assigned"},
		{`var s struct{ t struct{ x int } }; func f() { s.t.x = 1 }`, "s is assigned"},
		{`var p = &struct{ x int }{}; func f() { p.x = 1 }`, "p is assigned"},
		{`var p = new(int); func f() { *p = 1 }`, "p is assigned"},
		{`var m = map[string]int{}; func init() { m["a"] = 1 }`, "m is assigned"},
		{`var m = map[string]int{}; func f() { delete(m, "a") }`, "m is changed by delete"},
		{`var m = map[string]int{}; func f() { clear(m) }`, "m is changed by clear"},
		{`var b []byte; func f(x []byte) { copy(b[2:], x) }`, "b is changed by copy"},
		{`var b []byte; func f() []byte { return append(b[:0], 1) }`, "b is changed by append"},
		{`var n int; func f(x []int) { for n = range x { } }`, "n is assigned"},
		{`var x, n int; func f() (int, error) { return 0, nil }; func g() { var err error; n, err = f(); _ = err }`, "n is assigned"},
		{`var n int; func f() { g := func() { n = 1 }; g() }`, "n is assigned"},
		{`import "sync"; var mu sync.Mutex`, "mu is of package sync"},
		{`import a "sync/atomic"; var n a.Int32`, "n is of package sync/atomic"},
		{`import "sync"; var seen = map[string]*sync.Once{}`, "seen is of package sync"},
		{`import "sync"; var p = &sync.Pool{}`, "p is of package sync"},
		{`type c struct{ n int }; func (x *c) add() { x.n++ }; var v c; func f() { v.add() }`, "v has its address taken"},
		{`var c = make(chan int, 1)`, "c is a channel"},
		{`import "net/http"; func f() { http.DefaultClient = nil }`, "http.DefaultClient is assigned"},
		{`var Limit = 3`, "Limit is exported"},
		{`import "errors"; var ErrGone, Other = errors.New("gone"), 1`, "Other is exported"},

		{`var n int; func f() { n := 1; n = 2; _ = n }`, ""},
		{`var n int; func f(n int) { n = 2 }`, ""},
		{`var n int; type t struct{ n int }; func (t t) f() { t.n = 2 }`, ""},
		{`var n int; func f() (n int) { n = 2; return }`, ""},
		{`import "errors"; var ErrGone = errors.New("gone"); var errOther = errors.New("other")`, ""},
		{`import "sync"; var once = sync.OnceValue(func() int { n := 1; n++; return n })`, ""},
		{`import "regexp"; var word = regexp.MustCompile("a"); func f(s string) bool { return word.MatchString(s) }`, ""},
		{`type c int; func (c c) String() string { return "" }; var v c; var _ = v.String(); func f() string { return v.String() }`, ""},
		{`var m = map[string]int{"a": 1}; func f() { for k, v := range m { _, _ = k, v } }`, ""},
		{`var m = map[string]int{"a": 1}; func f() []int { return append([]int{}, m["a"]) }`, ""},
		{`var a [3]int; func f() { g(a[:]) }; func g([]int) {}`, ""},
		{`var s = "text"; func f() string { return s[1:] }`, ""},
		{`var a = []int{1}; func f() []int { return a[1:] }`, ""},
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "p.go", "package p; "+test.src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("%s: %v", test.src, err)
		}
		faults := strings.Join(variableFaults(fset, "room/p", []*ast.File{file}), "; ")
		if (faults == "") != (test.fault == "") || !strings.Contains(faults, test.fault) {
			t.Errorf("%s\ngot %q, want %q", test.src, faults, test.fault)
		}
	}
}

// unread is an importer of nothing: what other packages hold does not matter here.
type unread struct{}

func (unread) Import(string) (*types.Package, error) { return nil, errors.New("not read") }

// variableFaults says which package-level variables of one package are changed
// somewhere in it, could only be there to be changed, or are exported. It does
// not follow what is copied or sliced out of a variable.
func variableFaults(fset *token.FileSet, pkg string, files []*ast.File) (faults []string) {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	config := types.Config{Importer: unread{}, Error: func(error) {}} // names are resolved whatever the imports are
	checked, _ := config.Check(pkg, fset, files, info)
	fault := func(at ast.Node, format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%s: %s", fset.Position(at.Pos()), fmt.Sprintf(format, args...)))
	}
	// variable names the package-level variable that an expression is a part
	// of: of this package, or of another.
	variable := func(e ast.Expr) (string, bool) {
		for {
			switch x := e.(type) {
			case *ast.ParenExpr:
				e = x.X
			case *ast.StarExpr:
				e = x.X
			case *ast.IndexExpr:
				e = x.X
			case *ast.SliceExpr:
				e = x.X
			case *ast.SelectorExpr:
				if id, ok := x.X.(*ast.Ident); ok {
					if _, other := info.Uses[id].(*types.PkgName); other {
						return id.Name + "." + x.Sel.Name, true
					}
				}
				e = x.X
			case *ast.Ident:
				v, ok := info.Uses[x].(*types.Var)
				return x.Name, ok && v.Parent() == checked.Scope()
			default:
				return "", false
			}
		}
	}
	assigned := func(e ast.Expr) {
		if name, ok := variable(e); ok {
			fault(e, "%s is assigned: no variable at package level may change", name)
		}
	}
	addressed := func(e ast.Expr) {
		if name, ok := variable(e); ok {
			fault(e, "%s has its address taken: no variable at package level may change", name)
		}
	}
	for _, file := range files {
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
				for _, spec := range g.Specs {
					s := spec.(*ast.ValueSpec)
					for _, name := range s.Names {
						what := path.Base(pkg) + "." + name.Name
						if name.IsExported() && !strings.HasPrefix(name.Name, "Err") && exportedVariables[what] == "" {
							fault(name, "%s is exported: whoever imports it could change it", name.Name)
						}
						if from := locking(info, s); from != "" && name.Name != "_" {
							fault(name, "%s is %s: it can only be there to change", name.Name, from)
						}
					}
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, e := range n.Lhs {
						assigned(e)
					}
				}
			case *ast.IncDecStmt:
				assigned(n.X)
			case *ast.RangeStmt:
				if n.Tok == token.ASSIGN {
					assigned(n.Key)
					assigned(n.Value)
				}
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					addressed(n.X)
				}
			case *ast.SelectorExpr:
				// A method with a pointer receiver takes the address unseen.
				if s := info.Selections[n]; s != nil && s.Kind() == types.MethodVal {
					_, wants := s.Obj().Type().(*types.Signature).Recv().Type().(*types.Pointer)
					_, has := s.Recv().Underlying().(*types.Pointer)
					if wants && !has {
						addressed(n.X)
					}
				}
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 {
					if _, builtin := info.Uses[id].(*types.Builtin); builtin && slices.Contains([]string{"delete", "clear", "copy", "append"}, id.Name) {
						if name, ok := variable(n.Args[0]); ok {
							fault(n, "%s is changed by %s: no variable at package level may change", name, id.Name)
						}
					}
				}
			}
			return true
		})
	}
	return faults
}

// locking says of a variable that is made to change what it is: a channel, or
// something of sync but the functions that run once.
func locking(info *types.Info, s *ast.ValueSpec) (from string) {
	for _, e := range append([]ast.Expr{s.Type}, s.Values...) {
		if e == nil {
			continue
		}
		if t := info.Types[e].Type; t != nil {
			if _, channel := t.Underlying().(*types.Chan); channel {
				return "a channel"
			}
		}
		ast.Inspect(e, func(n ast.Node) bool {
			if _, function := n.(*ast.FuncLit); function {
				return false
			}
			if sel, ok := n.(*ast.SelectorExpr); ok && !strings.HasPrefix(sel.Sel.Name, "Once") || ok && sel.Sel.Name == "Once" {
				if id, ok := sel.X.(*ast.Ident); ok {
					if p, ok := info.Uses[id].(*types.PkgName); ok && (p.Imported().Path() == "sync" || p.Imported().Path() == "sync/atomic") {
						from = "of package " + p.Imported().Path()
					}
				}
			}
			return true
		})
	}
	return from
}
