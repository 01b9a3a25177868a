package role

import (
	"os"
	"strings"
	"testing"
)

// The table that a reader finds is the machine that decides.
func TestTheTableInTheDocumentIsTheMachine(t *testing.T) {
	text, err := os.ReadFile("../../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "<!-- roles: begin -->\n")
	table, _, ok := strings.Cut(rest, "<!-- roles: end -->")
	if !ok || strings.TrimSpace(table) != strings.TrimSpace(Table()) {
		t.Error("docs/architecture.md has another table than `go run ./supervisor/service/role/print` prints")
	}
}
