package steps

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy/election"
)

const lease = 3 * time.Second

// story is what happens to one service, s, of nodes with one session each.
type story struct {
	*Acceptor
	zxid  int64
	now   time.Time
	wrong []string
}

func newStory(nodes ...int64) *story {
	s := &story{Acceptor: New("/u"), now: time.Unix(1e9, 0)}
	for _, n := range nodes {
		s.txn(n, Op{Create, beatOf(n), data(election.Node{LeaseMs: lease.Milliseconds()})})
	}
	return s
}

var paths = election.Paths{Root: "/u", Service: "s"}

func beatOf(n int64) string { return fmt.Sprint("/u/nodes/n", n) }

func claimOf(n int) string { return fmt.Sprint(paths.Dir(), "/claim-", n) }

func nameOf(n int) string { return fmt.Sprint(paths.Dir(), "/record-", n) }

func data(v any) []byte {
	b, _ := json.Marshal(v)
	return b
}

func (s *story) note(err error) {
	if err != nil {
		s.wrong = append(s.wrong, err.Error())
	}
}

func (s *story) txn(session int64, ops ...Op) {
	s.zxid, s.now = s.zxid+1, s.now.Add(time.Millisecond)
	s.note(s.Commit(Txn{Zxid: s.zxid, At: s.now, Session: session, Ops: ops}))
}

func (s *story) ends(session int64, expired bool) {
	s.zxid++
	s.note(s.Commit(Txn{Zxid: s.zxid, At: s.now, Session: session, Ended: true, Expired: expired}))
}

func (s *story) passes(d time.Duration) { s.now = s.now.Add(d) }

func program(n, token int64) Program {
	return Program{ID: [2]int64{n, token}, Service: "s", Node: fmt.Sprint("n", n), Token: token}
}

func (s *story) starts(n, token int64) { s.note(s.Start(program(n, token))) }

func (s *story) dies(n, token int64) { s.End(program(n, token)) }

func check(path string) Op { return Op{Kind: Check, Path: path} }

func remove(path string) Op { return Op{Kind: Delete, Path: path} }

func create(path string) Op { return Op{Kind: Create, Path: path} }

// recordOf is the record of a node, with a name.
func recordOf(n int64, name int, token int64) election.BreadCrumb {
	return election.BreadCrumb{
		Node: fmt.Sprint("n", n), Session: election.SessionName(n), Tree: data(n), Name: fmt.Sprint(name), Token: token,
		LeaseMs: lease.Milliseconds(),
	}
}

func lockOf(n int64) Op {
	return Op{Create, paths.Lock(), data(election.Lock{Node: fmt.Sprint("n", n)})}
}

func written(kind Kind, b election.BreadCrumb) Op { return Op{kind, paths.Crumb(), data(b)} }

// claim takes the lock with a name of that number, which is the record's too; token is the lock's.
func (s *story) claim(n int64, name int, more ...Op) (token int64) {
	s.txn(n, append([]Op{lockOf(n), {Kind: Set, Path: paths.Dir()}, create(claimOf(name))}, more...)...)
	return s.zxid
}

func (s *story) claimBoth(n int64, name int, more ...Op) (token int64) {
	return s.claim(n, name, append([]Op{written(Create, recordOf(n, name, 0)), create(nameOf(name))}, more...)...)
}

// active is node 1 with its program.
func (s *story) active() (token int64) {
	token = s.claimBoth(1, 1)
	s.starts(1, token)
	s.txn(1, check(claimOf(1)), written(Set, recordOf(1, 1, token)), check(nameOf(1)))
	return token
}

// fences is node 2, which has claimed after node 1, of which the record is left.
func (s *story) fences() (former, token int64) {
	former = s.active()
	s.passes(2 * lease)
	s.dies(1, former)
	s.ends(1, true)
	return former, s.claim(2, 2, remove(claimOf(1)))
}

// over is an inscription of node 2 over the record of node 1.
func over(token int64) []Op {
	return []Op{check(paths.Lock()), check(claimOf(2)), written(Set, recordOf(2, 2, token)), remove(nameOf(1)), create(nameOf(2))}
}

func without(ops []Op, i int) []Op { return append(ops[:i:i], ops[i+1:]...) }

// release is that of node 1, with its record.
func release() []Op {
	return []Op{check(claimOf(1)), remove(paths.Crumb()), remove(nameOf(1)), remove(paths.Lock())}
}

// vacated is by node 2.
func vacated() []Op { return []Op{check(claimOf(1)), check(beatOf(1)), remove(paths.Lock())} }

func TestStepsAreAccepted(t *testing.T) {
	for name, play := range map[string]func(*story){
		"a release": func(s *story) {
			s.dies(1, s.active())
			s.txn(1, release()...)
			s.starts(2, s.claimBoth(2, 2, remove(claimOf(1))))
		},
		"guardians": func(s *story) {
			s.dies(1, s.active())
			s.txn(1, release()...)
			s.ends(1, false)
			s.starts(2, s.claimBoth(2, 2, remove(claimOf(1))))
		},
		"a release without a record that is its own": func(s *story) {
			s.fences()
			s.txn(2, check(claimOf(2)), remove(paths.Lock()))
		},
		"an expiry, and a record that is written over": func(s *story) {
			_, token := s.fences()
			s.txn(2, over(token)...)
			s.starts(2, token)
			s.dies(2, token)
			s.starts(2, token) // again, in the same activation
		},
		"a vacate": func(s *story) {
			former := s.active()
			s.passes(lease)
			s.dies(1, former)
			s.txn(2, vacated()...)
			token := s.claim(2, 2, remove(claimOf(1)))
			s.txn(2, over(token)...)
			s.starts(2, token)
		},
		"a lock of the node's own earlier session": func(s *story) {
			s.dies(1, s.active())
			s.ends(2, false)
			s.txn(3, Op{Create, "/u/nodes/n1", nil})
			s.txn(3, check(claimOf(1)), remove(paths.Lock()))
		},
		"a record is removed after its lock": func(s *story) {
			s.fences()
			s.txn(1, check(claimOf(2)), remove(paths.Crumb()), remove(nameOf(1)))
		},
		"an operator": func(s *story) {
			token := s.active()
			s.txn(77, remove(paths.Lock())) // by hand
			s.dies(1, token)
			s.ends(1, true)
			s.txn(77, check(claimOf(1)), remove(nameOf(1)), remove(paths.Crumb())) // fence confirm
			s.starts(2, s.claimBoth(2, 2, remove(claimOf(1))))
		},
		"a session that a stranger ends": func(s *story) {
			s.active()
			s.Meddled(1)
			s.ends(1, false)
		},
		"data that is lost": func(s *story) {
			s.active()
			s.Lost()
			s.zxid = 0
			s.starts(2, s.claimBoth(2, 2))
		},
		"a failsafe program keeps its lock's token": func(s *story) {
			bound := recordOf(1, 1, 0)
			bound.Failsafe = &election.Failsafe{Members: []election.Peer{{Node: "n2"}}}
			token := s.claim(1, 1, written(Create, bound), create(nameOf(1)))
			s.starts(1, token)
			s.ends(1, true)
			s.txn(3, Op{Create, "/u/nodes/n1", nil})
			bound.Token, bound.Session = token, election.SessionName(3)
			again := election.Lock{Node: "n1", Token: token}
			s.txn(3, remove(claimOf(1)), create(claimOf(2)), written(Set, bound), Op{Create, paths.Lock(), data(again)}, check(nameOf(1)))
			s.dies(1, token)
			s.starts(1, token)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(1, 2)
			play(s)
			for _, wrong := range s.wrong {
				t.Error(wrong)
			}
		})
	}
}

func TestWhatIsNoStepIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		says string // among what is refused first
		play func(*story)
	}{
		"a second lock": {"claim (mayclaim): there is a lock", func(s *story) {
			s.active()
			s.claim(2, 2, remove(claimOf(1)))
		}},
		"a claim with a name that was there": {"claim (mayclaim): " + claimOf(1) + " was there before", func(s *story) {
			s.dies(1, s.active())
			s.txn(1, release()...)
			s.claimBoth(2, 1)
		}},
		"a claim without a name": {"claim (mayclaim): it makes 0 names", func(s *story) { s.txn(1, lockOf(1)) }},
		"a claim that leaves another name": {"claim (mayclaim): the name of another claim stays", func(s *story) {
			s.dies(1, s.active())
			s.txn(1, release()...)
			s.claimBoth(2, 2)
		}},
		"a claim with another's record": {"claim (mayclaim): the record gives session", func(s *story) {
			s.claim(1, 1, written(Create, recordOf(2, 1, 0)), create(nameOf(1)))
		}},
		"a record without its name": {"claim (mayclaim): the record has the name", func(s *story) {
			s.claim(1, 1, written(Create, recordOf(1, 1, 0)))
		}},
		"an inscription without the lock": {"inscribe (maywrite): the lock is not there", func(s *story) {
			_, token := s.fences()
			s.txn(2, check(claimOf(2)), remove(paths.Lock()))
			s.txn(2, over(token)...)
		}},
		"an inscription that does not check the lock": {"inscribe (maywrite): the lock is not checked", func(s *story) {
			_, token := s.fences()
			s.txn(2, without(over(token), 0)...)
		}},
		"an inscription that does not check its claim": {"inscribe (maywrite): the name of the newest claim is not", func(s *story) {
			_, token := s.fences()
			s.txn(2, without(over(token), 1)...)
		}},
		"an inscription that leaves the old name": {"inscribe (maywrite): the record's name is not checked", func(s *story) {
			_, token := s.fences()
			s.txn(2, without(over(token), 3)...)
		}},
		"an inscription over a program that is alive": {"is alive (P1, P5)", func(s *story) {
			s.active()
			s.txn(77, remove(paths.Lock()))
			s.txn(2, over(s.claim(2, 2, remove(claimOf(1))))...)
		}},
		"an inscription with another token": {"inscribe (maywrite): the record gives token 1", func(s *story) {
			s.fences()
			s.txn(2, over(1)...)
		}},
		"a signature with another token": {"sign (unsigned_): the record gives token 1", func(s *story) {
			s.claimBoth(1, 1)
			s.txn(1, check(claimOf(1)), written(Set, recordOf(1, 1, 1)), check(nameOf(1)))
		}},
		"a signature at the record's version alone": {"sign (unsigned_): the record's name is not checked", func(s *story) {
			token := s.claimBoth(1, 1)
			s.txn(1, check(claimOf(1)), written(Set, recordOf(1, 1, token)))
		}},
		"a release before the death": {"release (maydelete): a program of s on n1 with token 3 is alive (P2)", func(s *story) {
			s.active()
			s.txn(1, release()...)
		}},
		"a release that does not check its claim": {"release (maydelete): the name of the newest claim is not checked", func(s *story) {
			s.dies(1, s.active())
			s.txn(1, without(release(), 0)...)
		}},
		"a release that leaves its own record": {"release (maydelete): its own record stays", func(s *story) {
			s.dies(1, s.active())
			s.txn(1, check(claimOf(1)), remove(paths.Lock()))
		}},
		"a release with another's record": {"release (maydelete): it removes a record that is that of n1", func(s *story) {
			s.fences()
			s.txn(2, check(claimOf(2)), remove(paths.Crumb()), remove(nameOf(1)), remove(paths.Lock()))
		}},
		"a vacate that checks no beat": {"vacate (succession.pml): the beat of n1 is not checked", func(s *story) {
			s.dies(1, s.active())
			s.passes(lease)
			s.txn(2, without(vacated(), 1)...)
		}},
		"a vacate that checks no claim": {"vacate (succession.pml): the name of the newest claim", func(s *story) {
			s.dies(1, s.active())
			s.passes(lease)
			s.txn(2, without(vacated(), 0)...)
		}},
		"a vacate after less than a lease": {"vacate (succession.pml): the beat of n1 stood still for", func(s *story) {
			s.dies(1, s.active())
			s.txn(1, Op{Set, beatOf(1), data(election.Node{})})
			s.passes(lease - 2*time.Millisecond)
			s.txn(2, vacated()...)
		}},
		"a vacate with the other's record": {"vacate (succession.pml): it removes a record", func(s *story) {
			s.dies(1, s.active())
			s.passes(lease)
			s.txn(2, append(vacated(), remove(paths.Crumb()), remove(nameOf(1)))...)
		}},
		"a vacate while a program is alive": {"vacate (succession.pml): a program", func(s *story) {
			s.active()
			s.passes(lease)
			s.txn(2, vacated()...)
		}},
		"a removal at the record's version alone": {"removal of the record (maydisown): the name of the newest claim", func(s *story) {
			s.fences()
			s.txn(1, remove(paths.Crumb()), remove(nameOf(1)))
		}},
		"a removal that leaves the name": {"removal of the record (maydisown): the record's name is not checked", func(s *story) {
			s.fences()
			s.txn(1, check(claimOf(2)), remove(paths.Crumb()))
		}},
		"fence confirm while the program is alive": {"removal of the record (maydisown): a program", func(s *story) {
			s.active()
			s.txn(77, check(claimOf(1)), remove(paths.Crumb()), remove(nameOf(1)))
		}},
		"fence confirm while the session is there": {"removal of the record (maydisown): its session is registered", func(s *story) {
			s.dies(1, s.active())
			s.txn(77, check(claimOf(1)), remove(paths.Crumb()), remove(nameOf(1)))
		}},
		"an expiry while a program is alive": {"expiry (P3)", func(s *story) {
			s.active()
			s.ends(1, true)
		}},
		"a session that is closed while a program is alive": {"close (overSession of the guardians)", func(s *story) {
			s.active()
			s.ends(1, false)
		}},
		"a second program": {"start (FORK, P1)", func(s *story) {
			s.active()
			s.starts(2, 9)
		}},
		"a start without a record": {"start (FORK, P5)", func(s *story) { s.starts(1, s.claim(1, 1)) }},
		"a start with another's record": {"start (FORK, P5)", func(s *story) {
			_, token := s.fences()
			s.starts(2, token)
		}},
		"a start with a smaller token": {"start (FORK, ORDER)", func(s *story) {
			former, token := s.fences()
			s.txn(2, over(token)...)
			s.starts(2, token)
			s.dies(2, token)
			s.starts(1, former)
		}},
		"names that come alone": {"none: names come and go", func(s *story) { s.txn(1, create(claimOf(3))) }},
		"a lock that is taken again for a program without promises": {"reclaim (failsafe.pml): the record is that of n1", func(s *story) {
			token := s.active()
			s.dies(1, token)
			s.ends(1, true)
			mine := recordOf(3, 1, token)
			again := election.Lock{Node: "n1", Token: token}
			s.txn(3, Op{Create, "/u/nodes/n1", nil})
			s.txn(3, remove(claimOf(1)), create(claimOf(2)), written(Set, mine), Op{Create, paths.Lock(), data(again)}, check(nameOf(1)))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(1, 2)
			c.play(s)
			if len(s.wrong) != 1 || !strings.Contains(s.wrong[0], c.says) {
				t.Errorf("refused: %q", s.wrong)
			}
		})
	}
}
