package fencing

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SSH is the method that runs `understudy fence kill-local` on the target's host. That kills the child by the identity of its
// process tree, and prints a statement, which is the only proof. The host has to be a known one.
type SSH struct {
	User       string
	KeyFile    string
	KnownHosts string
	Address    string // host:port; {host} and the like are filled in; "{host}:22" unless set, "{plug}:22" with plugs
	Command    string // "understudy fence kill-local" unless set; its arguments are appended
	Plugs      Plugs
}

// Name is "ssh".
func (SSH) Name() string { return "ssh" }

// Fence logs in and runs the command.
func (s SSH) Fence(ctx context.Context, t Target) error {
	facts, err := s.Plugs.facts(t)
	if err != nil {
		return err
	}
	address := s.Address
	switch {
	case address != "":
	case facts.listed:
		address = "{plug}:22"
	case t.Host == "":
		return errors.New("the record of the active node gives no host")
	default:
		address = "{host}:22"
	}
	addr, err := facts.fill(address, told, nil) // an unknown host gets no data
	if err != nil {
		return err
	}
	client, err := s.login(ctx, addr)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("log in at %s: %w", addr, err)
	}
	defer client.Close()
	defer context.AfterFunc(ctx, func() { client.Close() })()
	session, err := client.NewSession()
	if err != nil {
		return fmt.Errorf("open a session: %w", err)
	}
	defer session.Close()
	var out, errs tail
	session.Stdout, session.Stderr = &out, &errs
	command := cmp.Or(s.Command, "understudy fence kill-local") + " --service " + t.Service +
		" --token " + strconv.FormatInt(t.Token, 10) + " --target " + t.Encode()
	err = session.Run(command)
	if ctx.Err() != nil {
		return fmt.Errorf("given up: %w", context.Cause(ctx))
	}
	statement, unread := lastStatement(out.text)
	switch {
	case unread == nil && !statement.Dead:
		return statement.Convinces(t)
	case err != nil:
		return fmt.Errorf("it failed there: %w%s", err, errs.quoted())
	case unread != nil: // exit code 0 alone proves nothing
		return fmt.Errorf("it made no statement: %w%s", unread, out.quoted())
	}
	return statement.Convinces(t)
}

func lastStatement(text []byte) (s Statement, err error) {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	err = json.Unmarshal([]byte(lines[len(lines)-1]), &s)
	return s, err
}

// login opens a connection that ends with ctx while it is made.
func (s SSH) login(ctx context.Context, addr string) (*ssh.Client, error) {
	text, err := os.ReadFile(s.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("the key in %s cannot be used: %w", s.KeyFile, err)
	}
	known, err := knownhosts.New(s.KnownHosts)
	if err != nil {
		return nil, fmt.Errorf("read the known hosts: %w", err)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	config := &ssh.ClientConfig{
		User: s.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: known,
		HostKeyAlgorithms: algorithms(known, addr, conn.RemoteAddr()),
	}
	c, channels, requests, err := ssh.NewClientConn(conn, addr, config)
	stop()
	if err != nil {
		conn.Close()
		return nil, err
	}
	return ssh.NewClient(c, channels, requests), nil
}

// algorithms are those of a host's known keys: it may have others, which would look forged.
func algorithms(known ssh.HostKeyCallback, addr string, remote net.Addr) (all []string) {
	var wanted *knownhosts.KeyError
	if !errors.As(known(addr, remote, noKey{}), &wanted) {
		return nil
	}
	for _, k := range wanted.Want {
		switch kind := k.Key.Type(); kind {
		case ssh.KeyAlgoRSA: // SHA-1 is obsolete
			all = append(all, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		default:
			all = append(all, kind)
		}
	}
	return all
}

// noKey is no host's key.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return nil }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("no key") }
