package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
	"testing"
)

// exportedVariables are the exported variables that are no errors, with the reason.
var exportedVariables = map[string]string{
	"rewrite.Empty":    "a style without state, which a constant cannot be",
	"rewrite.Text":     "the same",
	"rewrite.Markdown": "the same",
	"rewrite.HTML":     "the same",
}

// TestNoMutableVariables: variables at package level never change.
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

// unread imports nothing: the contents of other packages do not matter here.
type unread struct{}

func (unread) Import(string) (*types.Package, error) { return nil, errors.New("not read") }

// variableFaults returns the package-level variables of a package that are
// changed in it, whose type has no other use, or that are exported. It does not
// follow copies and slices of a variable.
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
