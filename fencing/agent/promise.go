package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

// PromiseRequest asks a node to promise not to start a service for a while, counted from the request. The asker runs it,
// with a token, and cannot reach ZooKeeper.
type PromiseRequest struct {
	Service string        `json:"service"`
	Token   int64         `json:"token"`
	By      string        `json:"by"`      // who asks
	Of      string        `json:"of"`      // who is asked
	Machine string        `json:"machine"` // and on which machine
	For     time.Duration `json:"for"`
	Nonce   []byte        `json:"nonce"`
}

// promiseReply answers a PromiseRequest.
type promiseReply struct {
	Given   bool          `json:"given"`
	Why     string        `json:"why,omitempty"` // not
	Service string        `json:"service"`
	Token   int64         `json:"token"`
	Node    string        `json:"node"`
	Machine string        `json:"machine"`
	For     time.Duration `json:"for"`
}

// ErrNoPromise says that a node answered, but does not promise.
var ErrNoPromise = errors.New("it does not agree")

// longestPromise bounds how long one request can keep a node from starting a service.
const longestPromise = 10 * time.Minute

func readPromiseRequest(body []byte) (PromiseRequest, error) {
	var p PromiseRequest
	if err := json.Unmarshal(body, &p); err != nil {
		return PromiseRequest{}, fmt.Errorf("read what is asked: %w", err)
	}
	switch {
	case !isName(p.Service):
		return PromiseRequest{}, fmt.Errorf("%.100q is not a service name", p.Service)
	case !isName(p.By) || !isName(p.Of):
		return PromiseRequest{}, errors.New("a node without a name")
	case p.Token <= 0:
		return PromiseRequest{}, fmt.Errorf("%d is not a token", p.Token)
	case p.For <= 0 || p.For > longestPromise:
		return PromiseRequest{}, fmt.Errorf("%v is not a time to agree to", p.For)
	case len(p.Nonce) != nonceSize:
		return PromiseRequest{}, errors.New("no nonce")
	}
	return p, nil
}

// promiseRequest reads a request for a promise. What judges it does not wait.
func (s *Server) promiseRequest(_ net.Addr, body []byte) (judge func(context.Context) any, err error) {
	p, err := readPromiseRequest(body)
	return func(context.Context) any { return s.promise(p) }, err
}

func (s *Server) promise(p PromiseRequest) promiseReply {
	w := promiseReply{Service: p.Service, Token: p.Token, Node: s.Self.Node, Machine: s.Self.Machine, For: p.For}
	var err error
	switch {
	case s.Promise == nil:
		err = errors.New("the supervisor does not answer itself")
	case p.Of != s.Self.Node || p.Machine != s.Self.Machine:
		err = fmt.Errorf("this is %s, on machine %q", s.Self.Node, s.Self.Machine)
	case p.By == p.Of:
		err = errors.New("a node does not ask itself")
	default:
		err = s.Promise(p)
	}
	if w.Given = err == nil; !w.Given {
		w.Why = err.Error()
	}
	return w
}
