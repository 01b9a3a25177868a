package agent

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"understudy/fencing"
	"understudy/supervisor/wait"
)

// Method is the fencing method that asks the target's agent.
type Method struct {
	Keys *Keys
	Dial func(ctx context.Context, addr string) (net.Conn, error) // nil: TCP
}

// Name is "agent".
func (Method) Name() string { return "agent" }

const (
	onePatience = 1500 * time.Millisecond // for an agent's greeting
	again       = 50 * time.Millisecond   // between two attempts
)

// Fence asks until the agent has answered or ctx ends: on the other machine, a new agent may be about to replace a previous
// one.
func (m Method) Fence(ctx context.Context, t fencing.Target) error {
	if t.Address == "" {
		return errors.New("the record of the active node gives no agent")
	}
	if m.Keys == nil {
		return errNoKeys
	}
	var why error
	for {
		err := m.ask(ctx, t)
		if err == nil || errors.Is(err, fencing.ErrNotDead) {
			return err
		}
		var late net.Error
		if why == nil || ctx.Err() == nil && !(errors.As(err, &late) && late.Timeout()) { // an interrupted attempt says little
			why = err
		}
		if !wait.For(ctx, again) {
			return fmt.Errorf("ask the agent at %s: %w (%w)", t.Address, why, context.Cause(ctx))
		}
	}
}

func (m Method) ask(ctx context.Context, t fencing.Target) error {
	q := Question{
		Service: t.Service, Token: t.Token, Node: t.Node, Machine: t.Machine, Boot: t.Boot, Tree: t.Tree, Seen: t.Seen, Survive: t.Survive,
		By: t.By.Node, ByToken: t.By.Token, Nonce: newNonce(),
	}
	if end, ok := ctx.Deadline(); ok {
		q.Within = time.Until(end)
	}
	var answer Answer
	if err := m.talk(ctx, t.Address, asking, q, answering, &answer); err != nil {
		return err
	}
	return answer.Convinces(t)
}

// Promise asks the agent at an address, once, not to start a service for a while. It returns nil only for a promise.
func (m Method) Promise(ctx context.Context, addr string, p PromiseRequest) error {
	if m.Keys == nil {
		return errNoKeys
	}
	p.Nonce = newNonce()
	var w promiseReply
	if err := m.talk(ctx, addr, requesting, p, promising, &w); err != nil {
		return err
	}
	switch {
	case !w.Given:
		return fmt.Errorf("%w: %s", ErrNoPromise, w.Why)
	case w.Node != p.Of || w.Machine != p.Machine || w.Service != p.Service || w.Token != p.Token || w.For < p.For:
		return fmt.Errorf("%w: %s agreed to something else", ErrNoPromise, w.Node)
	}
	return nil
}

// talk is one conversation with an agent.
func (m Method) talk(ctx context.Context, addr, purpose string, q any, reply string, a any) error {
	secrets, err := m.Keys.Secrets()
	if err != nil {
		return err
	}
	conn, err := m.dial(ctx, addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	return converse(conn, secrets[0], purpose, q, reply, a)
}

func (m Method) dial(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, onePatience)
	defer cancel()
	if m.Dial != nil {
		return m.Dial(ctx, addr)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

// converse is one conversation, on the asker's side. It decodes no text that the secret does not prove.
func converse(conn net.Conn, secret []byte, purpose string, q any, reply string, a any) error {
	if err := conn.SetDeadline(time.Now().Add(onePatience)); err != nil {
		return err
	}
	nonce, err := greeted(conn)
	if err != nil {
		return err
	}
	body, err := json.Marshal(q)
	if err != nil {
		return fmt.Errorf("encode the question: %w", err)
	}
	mine := seal(secret, purpose, nonce, body)
	if err := send(conn, body, mine); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	// A kill may take a while; the caller's context is the limit.
	if err := conn.SetDeadline(time.Now().Add(answerPatience)); err != nil {
		return err
	}
	body, mac, err := receive(conn)
	if err != nil {
		return fmt.Errorf("no answer (is the secret the same on both sides?): %w", err)
	}
	if !hmac.Equal(mac, seal(secret, reply, nonce, mine, body)) {
		return fmt.Errorf("the answer is forged: %w", errForged)
	}
	if err := json.Unmarshal(body, a); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}
