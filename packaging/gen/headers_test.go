package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"testing"
)

// A condition is about what is assigned in front of it, if anything is: an effect that it does not look at is a statement of its own.
func TestNoConditionHidesAnEffect(t *testing.T) {
	files := token.NewFileSet()
	for _, file := range sources(t, files) {
		ast.Inspect(file, func(n ast.Node) bool {
			if at, ok := n.(*ast.IfStmt); ok && at.Init != nil && !looksAt(at.Cond, at.Init) {
				t.Errorf("%v: the condition does not look at what is done in front of it", files.Position(at.Pos()))
			}
			return true
		})
	}
}

// looksAt reports whether a condition names what is assigned.
func looksAt(cond ast.Expr, init ast.Stmt) (looks bool) {
	var set []ast.Expr
	switch s := init.(type) {
	case *ast.AssignStmt:
		set = s.Lhs
	case *ast.IncDecStmt:
		set = []ast.Expr{s.X}
	}
	ast.Inspect(cond, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		looks = looks || ok && slices.ContainsFunc(set, func(to ast.Expr) bool { return types.ExprString(to) == types.ExprString(e) })
		return true
	})
	return looks
}
