package sim

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// TestEverySabotageFitsTheCode tells of a rewrite that a sabotage has to follow, without committing any.
func TestEverySabotageFitsTheCode(t *testing.T) {
	module, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sabotages {
		text := map[string]string{}
		if err := (patch{module, s.changes}).apply(text); err != nil {
			t.Errorf("%s: %v", s.what, err)
		}
		for path, whole := range text {
			if _, err := parser.ParseFile(token.NewFileSet(), path, whole, parser.AllErrors); err != nil {
				t.Errorf("%s: %v", s.what, err)
			}
		}
	}
}
