package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/fencing"
	"understudy/supervisor/connections"
	"understudy/supervisor/loglimit"
	"understudy/supervisor/wait"
)

const (
	helloPatience  = 2 * time.Second  // to send and prove a question
	killPatience   = 8 * time.Second  // to kill and prove it
	answerPatience = 10 * time.Second // as the asker sees it
	maxUnproved    = 128
	maxProved      = 32
)

// Prove kills the tree that a question names, and returns whether it is dead. by is the proof.
type Prove func(ctx context.Context, q Question) (verdict fencing.Liveness, by string, err error)

// Promise binds this node not to start a service, or says why not.
type Promise func(p PromiseRequest) error

// Server answers questions.
type Server struct {
	Keys    *Keys
	Self    Answer // the answering node, machine and boot
	Prove   Prove
	Promise Promise // nil: nothing is promised
	Logger  hclog.Logger

	unproved connections.Queue

	underWay atomic.Int32 // proved questions

	once       sync.Once // guards the making of complaints
	complaints loglimit.Line
}

// Serve answers clients until ctx ends, and waits for its open answers.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			if err == nil {
				conn.Close()
			}
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("the agent's listener: %w", err)
		}
		if err != nil { // for example, no descriptors are left
			s.complain("", err)
			wait.For(ctx, 100*time.Millisecond)
			continue
		}
		wg.Go(func() { s.Answer(ctx, conn) })
	}
}

// Answer holds one conversation, and closes the connection.
func (s *Server) Answer(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	counted, _ := s.unproved.Add(conn, maxUnproved)
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	defer counted()
	if err := s.converse(ctx, conn, counted); err != nil && ctx.Err() == nil {
		s.complain(conn.RemoteAddr().String(), err)
	}
}

func (s *Server) converse(ctx context.Context, conn net.Conn, counted func()) error {
	if err := conn.SetDeadline(time.Now().Add(helloPatience)); err != nil {
		return err
	}
	secrets, err := s.Keys.Secrets()
	if err != nil {
		return err
	}
	nonce := newNonce()
	if err := greet(conn, nonce); err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	body, mac, err := receive(conn)
	if err != nil {
		return err
	}
	read, reply := s.question, answering
	secret, err := proved(secrets, asking, nonce, body, mac)
	if err != nil {
		read, reply = s.promiseRequest, promising
		secret, err = proved(secrets, requesting, nonce, body, mac)
	}
	if err != nil {
		return err
	}
	judge, err := read(conn.RemoteAddr(), body)
	if err != nil {
		return err
	}
	counted() // it is not closed for a newer one any more
	defer s.underWay.Add(-1)
	if s.underWay.Add(1) > maxProved {
		return errors.New("too many questions at a time")
	}
	answer, err := json.Marshal(judge(ctx))
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	if err := conn.SetDeadline(time.Now().Add(helloPatience)); err != nil {
		return err
	}
	if err := send(conn, answer, seal(secret, reply, nonce, mac, answer)); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// question reads a question about a death.
func (s *Server) question(from net.Addr, body []byte) (judge func(context.Context) any, err error) {
	q, err := readQuestion(body)
	return func(ctx context.Context) any { return s.judge(ctx, from, q) }, err
}

// judge makes the answer to a proved question.
func (s *Server) judge(ctx context.Context, from net.Addr, q Question) Answer {
	patience := killPatience
	if q.Within > 0 {
		patience = min(patience, q.Within*3/4) // the rest is for the way
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	facts := []any{"service", q.Service, "token", q.Token, "node", q.Node, "asked_by", q.By, "its_token", q.ByToken, "from", from.String()}
	s.Logger.Warn("asked to make sure that a program is dead", facts...)
	began := time.Now()
	a := s.Self
	a.Service, a.Token = q.Service, q.Token
	verdict, by, err := s.Prove(ctx, q)
	switch {
	case err == nil && verdict == fencing.Dead: // P2: an unproved death is none
		a.Dead, a.How, a.Undone = true, by, true
		s.Logger.Info("the program is dead", append(facts, "how", by, "took", time.Since(began))...)
		return a
	case err != nil:
		a.Alive, a.Why = verdict == fencing.Alive, strings.ReplaceAll(err.Error(), "\n", "; ")
		if left, ok := errors.AsType[*fencing.NotUndone](err); ok {
			a.Left = left.Names
		}
	case verdict == fencing.Alive:
		a.Alive, a.Why = true, "it is alive"
	default:
		a.Why = "this machine knows nothing about it"
	}
	if len(a.Why) > 1<<10 {
		a.Why = a.Why[:1<<10]
	}
	s.Logger.Warn("cannot confirm that the program is dead", append(facts, "why", a.Why)...)
	return a
}

// complain logs refused clients, at most one line a second.
func (s *Server) complain(from string, err error) {
	s.once.Do(func() {
		s.complaints = loglimit.Line{Log: s.Logger, Words: "the fencing agent refused a client", Window: time.Second}
	})
	s.complaints.Say(from, "why", err)
}
