package web

import (
	"regexp"
	"slices"
	"testing"

	"understudy/election"
	"understudy/supervisor/testbed/must"
)

// What the page decides by comes from Go: a role or a health that it names itself would be forgotten when that changes.
func TestThePageComparesNoWordOfTheCluster(t *testing.T) {
	compared := regexp.MustCompile(`[!=]== '([^']*)'`)
	for _, name := range scripts {
		text, err := pageFiles.ReadFile("page/" + name)
		must.OK(t, err)
		for _, found := range compared.FindAllSubmatch(text, -1) {
			word := string(found[1])
			healths := []election.Health{election.HealthOK, election.HealthStarting, election.HealthFailing, election.HealthUnfit, election.HealthUnknown}
			if slices.Contains(election.Roles(), election.Role(word)) || slices.Contains(healths, election.Health(word)) ||
				word != "switchover" && slices.Contains(ends, election.Reason(word)) || word == string(election.NoBreadcrumb) { // that is an order, too
				t.Errorf("%s compares %q", name, word)
			}
		}
	}
}
