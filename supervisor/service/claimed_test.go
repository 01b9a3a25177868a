package service

import "testing"

// counting is told of claims.
type counting struct {
	unobserved
	claims []string
}

func (c *counting) Claimed(service string) { c.claims = append(c.claims, service) }

// Who watches the metrics learns that another machine has an address of the service.
func TestAClaimOfAnAddressIsCounted(t *testing.T) {
	seen := &counting{}
	v := made(t, Conf{Name: "web"}, func(n *LocalNode) { n.Observer = seen })
	v.testStay(t.Context(), Session{}, &endingTree{}).term.runConfig(nil, nil).Claimed()
	if len(seen.claims) != 1 || seen.claims[0] != "web" {
		t.Errorf("told of %q", seen.claims)
	}
}
