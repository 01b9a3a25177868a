package kit

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// Overlap is a time in which two runs of one program both had a living process.
type Overlap struct {
	Earlier, Later Run
	Length         time.Duration
}

func (o Overlap) String() string {
	return fmt.Sprintf("for %v both ran: token %d on %s and token %d on %s", o.Length,
		o.Earlier.Token, o.Earlier.Node, o.Later.Token, o.Later.Node)
}

// Overlaps finds every pair of runs of which a process of the previous was seen after the latter had begun. Runs come in
// the order of their starts.
func Overlaps(runs []Run) []Overlap {
	var all []Overlap
	for i, previous := range runs {
		for _, latter := range runs[i+1:] {
			if previous.Last >= latter.First {
				length := time.Duration(min(previous.Last, latter.Last) - latter.First)
				all = append(all, Overlap{Earlier: previous, Later: latter, Length: length})
			}
		}
	}
	return all
}

// TokenFault is a run with a token that did not do its duty.
type TokenFault struct {
	Run  Run
	Text string
}

func (f TokenFault) String() string { return f.Text }

// TokenFaults tells where the fencing token did not do its duty: a number, the same within an activation, greater in
// every later one.
func TokenFaults(runs []Run) []TokenFault {
	var all []TokenFault
	for i, r := range runs {
		if r.Token <= 0 {
			all = append(all, TokenFault{r, fmt.Sprintf("%s ran with token %d", r.Node, r.Token)})
		}
		if i == 0 {
			continue
		}
		before := runs[i-1]
		if r.Token < before.Token || r.Token == before.Token && r.Node != before.Node {
			text := fmt.Sprintf("token %d on %s came %v after token %d on %s", r.Token, r.Node, time.Duration(r.First-before.Last), before.Token, before.Node)
			all = append(all, TokenFault{r, text})
		}
	}
	return all
}

// Gap is the time between two runs in which nothing ran.
func Gap(previous, latter Run) time.Duration { return time.Duration(latter.First - previous.Last) }

// CheckOverlap fails the test when two runs ever overlapped.
func (a *Accounts) CheckOverlap(tb testing.TB) {
	tb.Helper()
	for _, o := range Overlaps(a.Runs()) {
		tb.Errorf("two children at once: %v", o)
	}
	if denied, err := os.ReadFile(a.File("mutex.denied")); err == nil {
		tb.Errorf("children began while another held their mutex: %s", denied)
	}
}

// CheckTokens fails the test when a token did not do its duty.
func (a *Accounts) CheckTokens(tb testing.TB) {
	tb.Helper()
	for _, fault := range TokenFaults(a.Runs()) {
		tb.Errorf("fencing token: %v", fault)
	}
}
