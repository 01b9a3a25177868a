package election

import (
	"fmt"
	"time"
)

// Demotion says why a node is not preferred although its config prefers it: it took the service, and gave it up, again and again.
type Demotion struct {
	Times int        `json:"times"`           // in a row
	Until *time.Time `json:"until,omitempty"` // nil: until the service has run well there
}

func (d Demotion) String() string {
	if d.Until == nil {
		return fmt.Sprintf("not preferred any more: it gave the service up %d times in a row; when that is fixed, "+
			"switch the service over to it", d.Times)
	}
	return fmt.Sprintf("not preferred before %s: it gave the service up %d times in a row", d.Until.Format(time.RFC3339), d.Times)
}
