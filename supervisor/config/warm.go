package config

import (
	"cmp"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Warm has the program run on every node that may have the service. The one on the active node is promoted.
type Warm struct {
	Promote Order         `yaml:"promote" doc:"What has the program on the active node begin its work. By then it runs, and is ready."`
	Demote  Order         `yaml:"demote,omitempty" doc:"What has it cease, and stand by. Without it, or if it does not succeed in time, the program is stopped and started again."`
	Role    Command       `yaml:"role,omitempty,flow" doc:"Exit code 0 if the program stands by, 8 if it is promoted. Anything else means not known. Without it the answers to promote and demote count."`
	Timeout time.Duration `yaml:"timeout" doc:"How long promote, demote and role may take each."`
}

func (o *Warm) setDefaults() { o.Timeout = 10 * time.Second }

// Order is how a program is told something: one of the ways is given.
type Order struct {
	Exec   Command `yaml:"exec,omitempty,flow" oneof:"way" doc:"A command that does it. It has the token in UNDERSTUDY_TOKEN."`
	HTTP   string  `yaml:"http,omitempty" oneof:"way" doc:"A URL on this host, with a method before it or POST. It is done once the answer has a status from 200 to 299. The request has the token in the header Understudy-Token."`
	Signal Signal  `yaml:"signal,omitempty" oneof:"way" doc:"A signal to the first process of the program. Without role it counts as done once it is sent."`
}

// Request is what HTTP says.
func (o Order) Request() (method, url string) {
	method, url, both := strings.Cut(o.HTTP, " ")
	if !both {
		method, url = "POST", o.HTTP
	}
	return method, strings.TrimSpace(url)
}

// Given reports whether it says how.
func (o Order) Given() bool { return len(o.Exec) > 0 || o.HTTP != "" || o.Signal != 0 }

func (o Order) check(p place) {
	o.Exec.checkGiven(p.key("exec"))
	if idle := o.Exec.idle(); idle != "" {
		p.key("exec").warn("%s succeeds and gives the program no order: name a command that does", quoted(idle))
	}
	if o.HTTP == "" {
		return
	}
	method, text := o.Request()
	if methods := []string{"POST", "PUT", "PATCH", "DELETE", "GET"}; !slices.Contains(methods, method) {
		p.key("http").fault("%s is not a method: write one of %s before the URL", quoted(method), oneOf(methods))
	}
	checkURL(p.key("http"), text)
	if u, err := url.Parse(text); err == nil && u.Host != "" && u.Hostname() != "localhost" {
		if ip, err := netip.ParseAddr(u.Hostname()); err != nil || !ip.IsLoopback() { // P1
			p.key("http").fault("%s may be another node's, whose program would get the order: write 127.0.0.1", quoted(u.Hostname()))
		}
	}
}

// check checks the keys, and refuses what does not go together with a program that runs on every node.
func (o *Warm) check(p, service place, w written) {
	if o == nil {
		return
	}
	first := Process{Program: w.Program}
	if len(w.Processes) > 0 {
		first = w.Processes[0]
	}
	promote, demote := p.key("promote"), p.key("demote")
	if !o.Promote.Given() &&
		!slices.ContainsFunc([]string{"exec", "http", "signal"}, func(way string) bool { return promote.key(way).given() }) {
		promote.fault("does not say how: add http:, signal: or exec:")
	}
	if len(o.Promote.Exec) == 0 && o.Promote.Given() && first.Ready.Way() == "" {
		promote.warn("may come before the program expects it: add ready, which says when it does")
	}
	for _, one := range []struct {
		place
		Order
	}{{promote, o.Promote}, {demote, o.Demote}} {
		free := []Signal{Signal(syscall.SIGUSR1), Signal(syscall.SIGUSR2), Signal(syscall.SIGHUP)}
		free = slices.DeleteFunc(free, func(s Signal) bool { return s == first.StopSignal || s == w.ReloadSignal })
		switch s := one.key("signal"); {
		case one.Signal == 0:
		case one.Signal == first.StopSignal:
			s.and(service.key("stop_signal")).fault("%v is stop_signal, too, which ends the program: write %v, or another that it knows",
				one.Signal, free[0])
		case one.Signal == Signal(syscall.SIGKILL) || one.Signal == Signal(syscall.SIGSTOP):
			s.fault("%v ends or freezes the program: write %v, or another that it knows", one.Signal, free[0])
		case one.Signal == w.ReloadSignal:
			s.and(service.key("reload_signal")).warn("%v is reload_signal, too, so a reload gives this order: write %v, or another "+
				"that it knows", one.Signal, free[0])
		}
	}
	o.Promote.check(promote)
	o.Demote.check(demote)
	o.Role.checkGiven(p.key("role"))
	checkPositive(p.key("timeout"), o.Timeout)
	if o.unanswered() {
		demote.warn("has no effect without role, because a signal has no answer: nothing would show that the program has ceased, " +
			"so it is stopped")
	}
	if w.Replicated != nil {
		service.key("replicated").and(p).fault(
			"does not go with warm: it is for copies with data of their own, and promotes one of them, too")
	}
	w.checkFirst(service, p)
}

// checkFirst refuses a first process that is no program which could run on every node, as a key has it do.
func (w written) checkFirst(service, key place) {
	if len(w.Processes) == 0 {
		return
	}
	if first := w.Processes[0]; first.member() != "" || first.Oneshot || len(first.Undo) > 0 {
		service.key("processes").item(0).and(key).fault(
			"cannot run on every node, as the first of the processes does here: write the program first")
	}
}

// unanswered reports whether nothing would show that the program has done what demote wants: P1.
func (o *Warm) unanswered() bool {
	return o.Demote.Given() && len(o.Role) == 0 && cmp.Or(o.Promote.Signal, o.Demote.Signal) != 0
}

// copies is a warm service as one whose copies have no data: nothing is compared, and none follows another one.
func (o *Warm) copies() *Replicated {
	return &Replicated{Role: o.Role, Timeout: o.Timeout, Interval: time.Second}
}

// Promotes and Demotes are how the copy of a service is told what to be.
func (s Service) Promotes() Order {
	if s.Warm != nil {
		return s.Warm.Promote
	}
	return Order{Exec: s.Replicated.Promote}
}

// Demotes is nothing where the copy has to be stopped.
func (s Service) Demotes() Order {
	switch {
	case s.Warm != nil && s.Warm.unanswered():
		return Order{}
	case s.Warm != nil:
		return s.Warm.Demote
	}
	return Order{Exec: s.Replicated.Demote}
}
