package web

import (
	"errors"
	"strings"
	"testing"
	"time"

	"understudy/election"
	"understudy/supervisor/control"
)

func (b *bed) metrics() string {
	b.Helper()
	code, text := b.get("/metrics")
	if code != 200 {
		b.Fatalf("%d %s", code, text)
	}
	return text
}

func (b *bed) shows(lines ...string) {
	b.Helper()
	text := b.metrics()
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			b.Errorf("no line %q in\n%s", line, text)
		}
	}
}

// turn has db take a role on this node, as its supervisor tells it.
func (b *bed) turn(role election.Role, reason election.Reason, by election.Proof, token int64, ready bool) {
	b.board.State(control.LocalStatus{Service: "db", Role: role, Reason: reason, Token: token, By: by, Since: time.Now(), Health: "ok", Ready: ready})
}

// A node that is drained, or lacks a file, stands by all the same.
func TestAStandbyThatCannotTakeTheServiceIsTold(t *testing.T) {
	inBubble(t, func(b *bed) {
		for health, want := range map[election.Health]string{election.HealthOK: "1", election.HealthUnfit: "0"} {
			b.board.State(control.LocalStatus{Service: "db", Role: election.RoleStandby, Health: health})
			b.shows(`understudy_role{role="standby",service="db"} 1`, `understudy_can_take_over{service="db"} `+want)
		}
		b.turn("active", "no other node runs it", "", 7, true)
		b.shows(`understudy_can_take_over{service="db"} 0`)
	})
}

func TestANodeThatIsGoneIsInTheMetrics(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.board.Nodes(map[string]bool{"a": true, "b": false})
		b.shows(`understudy_node_connected{node="a"} 1`, `understudy_node_connected{node="b"} 0`)
	})
}

func TestAFailoverIsCounted(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.turn("standby", "session opened", "", 3, false)
		b.shows(`understudy_failovers_total{reason="fenced: grace",service="db"} 0`, `understudy_restarts_total{service="db"} 0`, `understudy_address_claims_total{service="db"} 0`)
		b.turn("claiming", "lock free", "", 3, false)
		time.Sleep(2 * time.Second)
		b.turn("fencing", "lock won", "", 7, false)
		b.board.Fenced("db", "grace", 2*time.Second)
		b.turn("active", "no other node runs it", "grace", 7, false)
		b.recorded(7, time.Now(), nil, "lost; fenced: grace")
		time.Sleep(10 * time.Second)
		if strings.Contains(b.metrics(), "understudy_gap_seconds") {
			b.Error("it is not ready yet, and the gap is known")
		}
		b.turn("active", "no other node runs it", "grace", 7, true)
		b.shows(`understudy_role{role="active",service="db"} 1`, `understudy_role{role="standby",service="db"} 0`, `understudy_healthy{service="db"} 1`,
			`understudy_fencing_seconds_sum{result="dead",service="db"} 2`, `understudy_takeover_seconds_sum{service="db"} 2`, `understudy_token{service="db"} 7`)
		time.Sleep(2 * time.Second)
		b.turn("active", "no other node runs it", "grace", 7, false)
		b.turn("active", "no other node runs it", "grace", 7, true) // started again
		time.Sleep(10 * time.Second)
		b.shows(`understudy_gap_seconds_sum{service="db"} 12`, `understudy_gap_seconds_count{service="db"} 1`,
			`understudy_failovers_total{reason="fenced: grace",service="db"} 1`)
		b.turn("stopping", "lease ending", "", 7, false)
		b.board.Fenced("db", "", time.Second)
		b.board.Restarted("db")
		b.board.Claimed("db")
		b.shows(`understudy_activations_ended_total{reason="lease ending",service="db"} 1`, `understudy_healthy{service="db"} 0`,
			`understudy_restarts_total{service="db"} 1`, `understudy_address_claims_total{service="db"} 1`, `understudy_fencing_seconds_count{result="refused",service="db"} 1`)
		b.board.Gone("db")
		if text := b.metrics(); strings.Contains(text, `service="db"`) {
			b.Errorf("a service that is gone is shown:\n%s", text)
		}
	})
}

// A rate knows nothing of a counter that was not there before: each method's first takeover is to be seen. Who confirmed is no label: there may
// be any number of them.
func TestTheFirstTakeoverOfEachMethodIsSeen(t *testing.T) {
	for proof, word := range map[election.Proof]string{
		"grace": "grace", "agent": "agent", "exec": "exec", "ssh, after exec failed": "ssh", "http": "http", "fence_agent": "fence_agent", "confirmed": "confirmed",
		election.ConfirmedBy("ann (root)@op"): "confirmed", "its tree on this machine is dead": "own host", "this machine has booted since": "own host",
	} {
		inBubble(t, func(b *bed) {
			series := `understudy_failovers_total{reason="fenced: ` + word + `",service="db"}`
			b.turn("standby", "session opened", "", 3, false)
			before := strings.Count(b.metrics(), "understudy_failovers_total{")
			b.shows(series + " 0")
			b.turn("active", "no other node runs it", proof, 7, true)
			b.recorded(7, time.Now(), nil, "lost; fenced: grace")
			time.Sleep(5 * time.Second)
			b.shows(series + " 1")
			if after := strings.Count(b.metrics(), "understudy_failovers_total{"); after != before {
				b.Errorf("%s: %d series, and %d before", proof, after, before)
			}
		})
	}
}

// recorded has the history know of a term, and how the one before it ended: gap is how long before.
func (b *bed) recorded(token int64, start time.Time, gap *int64, previous election.Reason) {
	list := []control.HistoryEntry{{Service: "db", Token: token, Start: start, GapMs: gap}, {Service: "db", Token: 1, Reason: previous}}
	if previous == "first" {
		list = list[:1]
	}
	b.cluster.change(func() { b.cluster.history = list })
}

// A clean hand-over is told from a failover by how the previous activation ended, also when this one is short.
func TestHandoversAndFailoversAreToldApart(t *testing.T) {
	const gapCount = `understudy_gap_seconds_count{service="db"}`
	for previous, want := range map[election.Reason]string{
		"switchover": `understudy_handovers_total{reason="switchover",service="db"} 1`,
		"stop asked": `understudy_handovers_total{reason="stop asked",service="db"} 1`,
		"supervisor lost; its program was known to be dead": `understudy_failovers_total{reason="supervisor lost",service="db"} 1`,
		"program failed": `understudy_failovers_total{reason="program failed",service="db"} 1`,
		"":               `understudy_failovers_total{reason="unknown",service="db"} 1`,
		"first":          `understudy_failovers_total{reason="unknown",service="db"} 0`,
	} {
		inBubble(t, func(b *bed) {
			gap := int64(3500)
			b.turn("claiming", "lock free", "", 3, false)
			time.Sleep(time.Second / 4)
			start := time.Now()
			b.turn("active", "no other node runs it", election.NoBreadcrumb, 7, false)
			time.Sleep(time.Second / 4)
			b.turn("active", "no other node runs it", election.NoBreadcrumb, 7, true)
			b.turn("stopping", "program failed", "", 7, false)
			time.Sleep(2 * time.Second) // the history is late
			b.recorded(7, start, &gap, previous)
			time.Sleep(time.Minute)
			b.shows(want)
			switch {
			case previous != "first":
				b.shows(gapCount+" 1", `understudy_gap_seconds_sum{service="db"} 3.5`)
			case strings.Contains(b.metrics(), gapCount):
				b.Error("a first start has a gap")
			}
			b.board.mu.Lock()
			if n := len(b.board.terms); n > 0 {
				b.Errorf("%d terms are left", n)
			}
			b.board.mu.Unlock()
			reads := b.cluster.asked()
			time.Sleep(time.Minute)
			if now := b.cluster.asked(); now != reads {
				b.Errorf("%d readings for nothing", now-reads)
			}
		})
	}
}

// What the history does not tell is measured from finding the lock free.
func TestAGapWhoseBeginningNobodyWroteDown(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.turn("claiming", "lock free", "", 3, false)
		time.Sleep(time.Second / 2)
		b.turn("active", "no other node runs it", election.NoBreadcrumb, 7, true)
		b.cluster.change(func() { b.cluster.broken = errors.New("no ZooKeeper server answers") })
		time.Sleep(time.Minute)
		b.shows(`understudy_gap_seconds_sum{service="db"} 0.5`, `understudy_failovers_total{reason="unknown",service="db"} 1`)
	})
}

func TestTheLeaseAndTheConfigAreShown(t *testing.T) {
	inBubble(t, func(b *bed) {
		time.Sleep(20 * time.Second)
		b.shows("understudy_lease_remaining_seconds 40", "understudy_session 1", "understudy_config_fault 0", "understudy_heartbeat_seconds_count 0")
		b.board.Lease(control.LeaseStatus{Session: "0x1", End: 90 * time.Second, Took: 30 * time.Millisecond})
		b.board.Faulty("no")
		b.shows("understudy_lease_remaining_seconds 70", "understudy_config_fault 1", "understudy_heartbeat_seconds_sum 0.03")
		b.board.Lease(control.LeaseStatus{})
		b.shows("understudy_lease_remaining_seconds 0", "understudy_session 0")
		if strings.Contains(b.metrics(), "understudy_watchdog_armed{") {
			b.Error("a watchdog where none is configured")
		}
		armed := false
		b.board.Watchdog("/dev/watchdog", "required", func() bool { return armed })
		b.shows(`understudy_watchdog_armed{device="/dev/watchdog",mode="required"} 0`)
		armed = true
		b.shows(`understudy_watchdog_armed{device="/dev/watchdog",mode="required"} 1`)
		if !strings.Contains(b.metrics(), `node="a",version="1.2.3"} 1`) {
			b.Error("no build_info")
		}
	})
}

// Of a replicated service the node says what its copy is, how far it is, and whether it reaches the primary.
func TestACopyIsMeasured(t *testing.T) {
	inBubble(t, func(b *bed) {
		at, position := time.Now(), uint64(1<<40)
		one := control.CopyStatus{Is: control.CopyFollower, Promotion: 7, Position: &position, Asked: &at, Sees: &election.SeenPrimary{Token: 7, Well: true}}
		b.board.State(control.LocalStatus{Service: "db", Role: "standby", Copy: func() control.CopyStatus { return one }})
		time.Sleep(3 * time.Second)
		b.shows(`understudy_copy_role{role="follower",service="db"} 1`, `understudy_copy_role{role="primary",service="db"} 0`, `understudy_copy_role{role="unknown",service="db"} 0`,
			`understudy_copy_promotion{service="db"} 7`, `understudy_copy_position{service="db"} 1.099511627776e+12`, `understudy_copy_position_age_seconds{service="db"} 3`,
			`understudy_copy_reaches_primary{service="db"} 1`)
		one.Sees = &election.SeenPrimary{Token: 7}
		b.shows(`understudy_copy_reaches_primary{service="db"} 0`)
		one = control.CopyStatus{Is: control.CopyUnknown}
		b.shows(`understudy_copy_role{role="unknown",service="db"} 1`, `understudy_copy_promotion{service="db"} 0`)
		b.board.State(control.LocalStatus{Service: "web", Role: "standby"})
		text := b.metrics()
		for _, not := range []string{"understudy_copy_position{", "understudy_copy_position_age_seconds{", "understudy_copy_reaches_primary{", `understudy_copy_role{role="unknown",service="web"}`} {
			if strings.Contains(text, not) {
				t.Errorf("%s is there:\n%s", not, text)
			}
		}
	})
}
