package service

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/replica"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
)

// fill gives each field that is written a value, and reports fields of a kind that it does not know.
func fill(v reflect.Value, path string, unknown func(string)) {
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = time.Unix(7, 0).UTC()
		return
	case *config.IP:
		*x = "192.0.2.10/32" // text that its reader takes
		return
	case *json.RawMessage:
		*x = json.RawMessage(`{"a":1}`)
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int8, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		v.SetUint(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), path, unknown)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), path, unknown)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, path, unknown)
		fill(value, path, unknown)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				fill(v.Field(i), path+"."+f.Name, unknown)
			}
		}
	default:
		unknown(path)
	}
}

// filled is a record with each field set.
func filled(t *testing.T) (r CarriedService) {
	fill(reflect.ValueOf(&r).Elem(), "Record", func(path string) { t.Errorf("how is %s set?", path) })
	r.Place.Tried.Leftover.Known = true // its being there says so
	return r
}

// Each field of a record arrives in the next image.
func TestARecordIsReadAsItWasWritten(t *testing.T) {
	r := filled(t)
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var read CarriedService
	if err := json.Unmarshal(raw, &read); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, r) {
		t.Errorf("written %+v\nread    %+v", r, read)
	}
}

// A service that remembers a record hands the same record over again.
func TestAServiceRemembersWhatWasRecorded(t *testing.T) {
	r := filled(t)
	r.Name, r.Cause, r.Fresh = "db", election.ChildFailed, false
	v := made(t, Conf{Service: config.Service{Warm: &config.Warm{}, Replicated: &config.Replicated{}}}, func(n *LocalNode) {
		n.Commands = unit.NewCommands(n.Guard, nil)
	})
	tree := &endingTree{}
	if err := r.Copy.Find(func(json.RawMessage, *unit.CarriedRun) (host.Tree, error) { return tree, nil }); err != nil {
		t.Fatal(err)
	}
	r.Copy.Tree = json.RawMessage(`{"tree":1}`) // its own
	v.Remember(r)
	for i, told := 0, reflect.ValueOf(v.mem.lastTerm); i < told.NumField(); i++ {
		if told.Field(i).IsZero() {
			t.Errorf("the next image does not know the last term's %s", told.Type().Field(i).Name)
		}
	}
	if again := v.Carry(); !reflect.DeepEqual(again, r) {
		t.Errorf("remembered %+v\ntold       %+v", r, again)
	}
	if !v.Carries() || v.Tree(r.Term.Tree) == nil {
		t.Error("its term is forgotten")
	}
}

// written is a note of one pending undo.
type written struct{ unit.Notes }

// Path implements unit.Notes.
func (written) Path() string { return "/dev/null" }

// Load implements unit.Notes.
func (written) Load() ([]byte, error) {
	return []byte(`{"node":"a","service":"db","pending_undos":[{"name":"vip","command":["true"],"timeout":1}]}`), nil
}

// P2: an upgrade in the first stay, as beside a process that cannot be killed, leaves it to the next image to read what must be undone.
func TestAnUpgradeBeforeTheFirstStayIsOverForgetsNothing(t *testing.T) {
	image := func() *Service {
		return made(t, Conf{}, func(n *LocalNode) { n.Notes = func(string) unit.Notes { return written{} } })
	}
	v := image()
	next := image()
	next.Remember(v.Carry())
	if next.unit.LoadUndos(); !next.unit.HasPendingEffects() || !next.Carry().Fresh {
		t.Errorf("it owes %v", next.unit.PendingEffects())
	}
}

// SINCE in `status` is not reset by an upgrade, but by the next change of the role.
func TestARoleLastsThroughAnUpgrade(t *testing.T) {
	v := made(t, Conf{}, nil)
	v.view.enter(election.RoleActive, role.NobodyElse)
	began := time.Now().Add(-time.Hour)
	v.view.shown.since = began
	v.view.enter(election.RoleOffline, role.TermHandedOver)
	next := made(t, Conf{}, nil)
	next.Remember(v.Carry())
	if next.view.enter(election.RoleActive, role.TermTakenOver); !next.view.shown.since.Equal(began) {
		t.Errorf("active since %v, not %v", next.view.shown.since, began)
	}
	next.view.enter(election.RoleStopping, election.StopAsked)
	if next.view.enter(election.RoleActive, role.NobodyElse); next.view.shown.since.Equal(began) {
		t.Error("a later activation counts as the one before the upgrade")
	}
}

// Between two images nobody sees when a program ends: of a term that does not go on, the history says since when, and until when.
func TestTheEndOfATermThatDoesNotGoOnIsBounded(t *testing.T) {
	seen := time.Now().UTC().Add(-3 * time.Second)
	var h history
	var e entry
	e.carried(&CarriedTerm{Entry: election.Activation{Token: 7}, Name: "entry-1", Seen: seen})
	h.noteEnd(&e, election.LeaseEnding)
	h.noteProved(&e)
	switch is := h.unwritten.entry; {
	case is.Entry != "entry-1" || is.EndMin == nil || is.EndMax == nil:
		t.Fatalf("%+v", is)
	case !is.EndMin.Equal(seen) || time.Since(*is.EndMax) > time.Minute || is.EndMax.Sub(seen) < 3*time.Second:
		t.Errorf("%v to %v", is.EndMin, is.EndMax)
	}
}

// A copy that a previous image has promoted is not promoted again, and what it is is asked on.
func TestAPromotedCopyIsNotPromotedAgain(t *testing.T) {
	v := made(t, Conf{Service: config.Service{Warm: &config.Warm{}, Replicated: &config.Replicated{}}}, nil)
	run := &unit.CarriedRun{}
	var p promotion
	if cfg := p.withPromotion(&term{candidacy: &candidacy{v: v}}, unit.RunConfig{Adopt: run}); cfg.Promote != nil || cfg.Attend == nil || cfg.Adopt != run {
		t.Errorf("%+v", cfg)
	}
}

// Another node that asks for the death of what runs here has what promotes the copy ended, too, before the term goes on.
func TestWhatPromotesACopyIsCarriedWithItsTerm(t *testing.T) {
	v := made(t, Conf{Service: config.Service{Replicated: &config.Replicated{}}}, nil)
	tree, orders := &endingTree{}, &endingTree{}
	h := v.testStay(t.Context(), Session{}, tree)
	h.term.promotion.promoteTree = orders
	run := &unit.CarriedRun{}
	if err := json.Unmarshal([]byte(`{"programs": [{}], "parts": [{"program": 0}]}`), run); err != nil {
		t.Fatal(err)
	}
	c, err := h.term.carry(election.CarriedClaim{}, run)
	if err != nil || c.Trees() != 2 || c.PromoteTree == nil {
		t.Fatalf("%+v, %v", c, err)
	}
	r := CarriedService{Name: "db", Term: c}
	looked := 0
	if err := r.Find(func(json.RawMessage) (host.Tree, bool) {
		looked++
		return []host.Tree{tree, orders}[looked-1], true
	}, v.log); err != nil {
		t.Fatal(err)
	}
	v.Remember(r)
	_ = v.Tree(c.Tree).Kill(t.Context(), "b", 8)
	if tree.ended != 1 || orders.ended != 1 {
		t.Errorf("ended %d times, and what promotes it %d times", tree.ended, orders.ended)
	}
	h.goesOn(&election.Claim{}, c)
	if h.term.promotion.promoteTree != orders {
		t.Error("the term does not know it")
	}
}

// While the data of a stopped copy is changed, nothing is handed over: that would begin anew.
func TestAnUpgradeIsRefusedWhilePrepareOrRecloneRuns(t *testing.T) {
	if why := Mending.Blocks("db"); why != "prepare or reclone of db is running here; upgrade once `understudy status` shows that it has ended" {
		t.Error(why)
	}
	v := made(t, Conf{Service: config.Service{Replicated: &config.Replicated{}}}, nil)
	for _, finds := range []UpgradeState{Free, Passing, Fit, Stuck} {
		if v.offer(finds); v.Upgrade() != finds {
			t.Errorf("%v: %v", finds, v.Upgrade())
		}
	}
}

// A warm program that stands by runs on in the next image, unless the service is not in the config any more.
func TestACarriedCopyIsStoppedOnlyIfItsServiceIsRemoved(t *testing.T) {
	for _, removed := range []bool{false, true} {
		v := made(t, Conf{Service: config.Service{Warm: &config.Warm{}, Replicated: &config.Replicated{}}}, func(n *LocalNode) {
			n.Commands = unit.NewCommands(n.Guard, nil)
		})
		if removed {
			v.Remove()
		}
		v.Remember(CarriedService{Name: "db", Copy: &replica.Carried{Run: &unit.CarriedRun{}}})
		if why := v.copy.Halted(); (why != "") != removed {
			t.Errorf("removed %v: it is stopped, because %q", removed, why)
		}
	}
}
