package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/control"
	"understudy/supervisor/printable"
)

const (
	// orderPatience is how long an order is waited for. One that nobody has followed by then is taken back.
	orderPatience = time.Minute
	// mostOrders is how many may be under way.
	mostOrders = 32
)

// Kinds of what an order is about.
const (
	aService = "service"
	aNode    = "node"
)

// orders are all that can be ordered.
var orders = map[string][]string{aService: {"switchover", "pause", "resume", "stop", "start", "restart", "reload", "reclone"},
	aNode: {"drain", "undrain"}}

// request is what the body of an order says.
type request struct {
	To     string `json:"to"`
	Node   string `json:"node"` // whose copy of a replicated service
	Force  bool   `json:"force"`
	Reason string `json:"reason"`
}

// outcome is what became of an order.
type outcome struct {
	answer map[string]any
	err    error
}

// clerk carries orders out.
type clerk struct {
	cluster cluster
	log     hclog.Logger
	orders  chan func(context.Context) // each is called once, by its receiver
	changed func()                     // is called when something was ordered
}

// order carries out an order of an operator who has shown the token, even if the client has gone meanwhile.
func (c *clerk) order(w http.ResponseWriter, r *http.Request) {
	order, kind := r.PathValue("order"), aService
	if r.PathValue(aNode) != "" {
		kind = aNode
	}
	name := r.PathValue(kind)
	if !printable.IsName(name) { // it would be in the log
		refuse(w, http.StatusNotFound, "that is not a "+kind+" name")
		return
	}
	wanted, err := parseRequest(kind, order, r.Body)
	if errors.Is(err, control.ErrUnknown) {
		refuse(w, http.StatusNotFound, err.Error())
		return
	} else if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	by := "a client over HTTP"
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		by = "a client at " + host + " over HTTP"
	}
	if http.NewResponseController(w).SetWriteDeadline(time.Now().Add(orderPatience+writePatience)) != nil {
		return
	}
	done := make(chan outcome, 1)
	select {
	case c.orders <- func(ctx context.Context) { done <- c.do(ctx, kind, name, order, by, wanted) }:
	case <-time.After(patience):
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "too many orders at once: nothing is done")
		return
	case <-r.Context().Done():
		return
	}
	if got := <-done; got.err != nil {
		undone(w, got.err)
	} else {
		answer(w, http.StatusOK, got.answer)
	}
}

// parseRequest reads a body. It refuses unknown keys: they may be the ones that matter to their author.
func parseRequest(kind, order string, body io.Reader) (request, error) {
	var v request
	text, err := io.ReadAll(body)
	if err == nil && len(bytes.TrimSpace(text)) > 0 {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err = d.Decode(&v); err == nil {
			if _, more := d.Token(); !errors.Is(more, io.EOF) {
				err = errors.New("there is more text after it")
			}
		}
	}
	if err != nil {
		why := strings.Replace(err.Error(), "json: unknown field", "unknown key", 1)
		if over, long := errors.AsType[*http.MaxBytesError](err); long {
			why = fmt.Sprintf("it is longer than %d bytes", over.Limit)
		}
		if _, syntax := errors.AsType[*json.SyntaxError](err); syntax {
			why = "this is not JSON"
		}
		if other, typed := errors.AsType[*json.UnmarshalTypeError](err); typed {
			why = strings.TrimSpace(other.Field + " is of another type: " + other.Value)
		}
		return v, fmt.Errorf(`the body must be a JSON object such as {"reason": "new disks"}: %s`, why)
	}
	switch {
	case len(v.Reason) > election.LongestReason:
		return v, fmt.Errorf("the reason is %d bytes long: at most %d are allowed", len(v.Reason), election.LongestReason)
	case !slices.Contains(orders[kind], order):
		return v, &control.UnknownError{Kind: "order", Name: order, Known: orders[kind]}
	case v.Node != "" && order != "restart" && order != "reload" && order != "reclone":
		return v, errors.New("only restart, reload and reclone are of a node's copy (node)")
	case v.Node == "" && order == "reclone":
		return v, errors.New("a reclone needs the node whose copy it replaces (node)")
	case order == "switchover", order == "drain" && v.To == "":
	case v.To != "" || v.Force:
		return v, errors.New("only a switchover has a target (to, force)")
	}
	return v, nil
}

// obey carries out what is ordered until ctx ends, and waits for the last order.
func (c *clerk) obey(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	free := make(chan struct{}, mostOrders)
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		select {
		case do := <-c.orders:
			wg.Go(func() {
				do(ctx)
				<-free
			})
		case <-ctx.Done():
			return
		}
	}
}

// do carries one order out, and tells the log how that went.
func (c *clerk) do(ctx context.Context, kind, name, order, by string, v request) outcome {
	log := c.log.With(kind, name, "order", order, "by", by)
	if v.Reason != "" {
		log = log.With("why", v.Reason)
	}
	limit := orderPatience
	if slices.Contains([]string{"pause", "resume", "stop", "start"}, order) || kind == aNode {
		limit = patience // no node is waited for
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	if v.To != "" || v.Force {
		log = log.With("to", v.To, "force", v.Force)
	}
	if v.Node != "" {
		log = log.With("copy", v.Node)
	}
	log.Info("ordered over HTTP")
	got := map[string]any{kind: name}
	var err error
	switch {
	case v.Node != "":
		got["node"] = v.Node
		err = c.cluster.OrderCopy(ctx, control.CopyRequest{Service: name, Node: v.Node, Do: order, By: by})
	case order == "switchover":
		steps := []string{}
		tell := func(step string) {
			steps = append(steps, step)
			log.Info("the order is in progress", "step", step)
		}
		got["active"], err = c.cluster.Switchover(ctx,
			control.SwitchoverRequest{Service: name, To: v.To, Force: v.Force, By: by, Tell: tell})
		got["steps"] = steps
	case order == "restart":
		err = c.cluster.Restart(ctx, name, by)
	case order == "reload":
		err = c.cluster.Reload(ctx, name, by)
	case order == "drain":
		got["drained"] = true
		got["changed"], got["services"], err = c.cluster.Drain(ctx, control.Draining{Node: name, By: by, Why: v.Reason, Force: v.Force})
	case order == "undrain":
		got["drained"] = false
		got["changed"], err = c.cluster.Undrain(ctx, name, by)
	case order == "stop", order == "start":
		got["stopped"] = order == "stop"
		got["changed"], err = c.cluster.Stop(ctx, name, order == "stop", by, v.Reason)
	default:
		paused := order == "pause"
		if !paused {
			v.Reason = ""
		}
		got["paused"] = paused
		got["changed"], err = c.cluster.Pause(ctx, name, paused, by, v.Reason)
	}
	took := time.Since(began)
	got["took_ms"] = took.Milliseconds()
	c.changed()
	if err != nil {
		log.Warn("the order is not done", "error", err, "took", took)
	} else {
		log.Info("the order is done", "took", took)
	}
	return outcome{got, err}
}

// undone answers that an order was not carried out.
func undone(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, control.ErrRefused), errors.Is(err, control.ErrFailed):
		refuse(w, http.StatusConflict, err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		refuse(w, http.StatusGatewayTimeout, err.Error())
	default:
		unread(w, err)
	}
}
