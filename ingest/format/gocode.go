package format

import (
	"go/ast"
	"go/parser"
	"go/token"
)

// goParts finds the declarations of a Go file by its syntax; ok is false when
// there is none that can be told.
func goParts(src string) (parts []codePart, ok bool) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, false
	}
	line := func(p token.Pos) int { return files.PositionFor(p, false).Line - 1 }
	add := func(name string, at token.Pos, comment *ast.CommentGroup) {
		part := codePart{name: name, level: 1, line: line(at), over: line(at)}
		if comment != nil {
			part.over = line(comment.Pos())
		}
		if n := len(parts); n > 0 && part.over <= parts[n-1].line {
			return // two on one line
		}
		parts = append(parts, part)
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil && len(d.Recv.List) > 0 {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			add("func "+name, d.Pos(), d.Doc)
		case *ast.GenDecl:
			switch {
			case d.Tok == token.IMPORT || len(d.Specs) == 0:
			case d.Tok == token.TYPE && !d.Lparen.IsValid():
				if s, ok := d.Specs[0].(*ast.TypeSpec); ok {
					add("type "+s.Name.Name, d.Pos(), d.Doc)
				}
			case d.Tok == token.TYPE:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok {
						add("type "+s.Name.Name, s.Pos(), s.Doc)
					}
				}
			default:
				if s, ok := d.Specs[0].(*ast.ValueSpec); ok {
					add(d.Tok.String()+" "+s.Names[0].Name, d.Pos(), d.Doc)
				}
			}
		}
	}
	return parts, true
}

// receiver gives the name of a method's type.
func receiver(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return "?"
		}
	}
}
