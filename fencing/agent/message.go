package agent

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"understudy/fencing"
)

const (
	magic     = "ustudy1\n"
	nonceSize = 32
	macSize   = sha256.Size
	maxBody   = 16 << 10
	maxName   = 256
)

// Question asks for the death of one activation's child.
type Question struct {
	Service string            `json:"service"`
	Token   int64             `json:"token"`
	Node    string            `json:"node"`
	Machine string            `json:"machine,omitempty"`
	Boot    string            `json:"boot"`
	Tree    json.RawMessage   `json:"tree,omitempty"`
	Seen    fencing.ProcessID `json:"seen,omitzero"` // was alive of it, whatever its containment shows
	Survive []string          `json:"survives_boot,omitempty"`
	By      string            `json:"by"`       // the node that holds the lock now
	ByToken int64             `json:"by_token"` // and its token
	Nonce   []byte            `json:"nonce"`
	Within  time.Duration     `json:"within,omitempty"` // an answer is waited for; 0: for long
}

// Target is whom a question of a node of this cluster is about.
func (q Question) Target(root string) fencing.Target {
	return fencing.Target{
		Root: root, Service: q.Service, Token: q.Token, Node: q.Node, Machine: q.Machine, Boot: q.Boot, Tree: q.Tree,
		Seen: q.Seen, Survive: q.Survive,
		By: fencing.Claimant{Node: q.By, Token: q.ByToken},
	}
}

// Answer is the asked machine's knowledge, and its identity.
type Answer = fencing.Statement

var (
	errForged    = errors.New("not made with our secret")
	errOversized = errors.New("oversized message")
	errMagic     = errors.New("not an agent of this version")
)

func newNonce() []byte {
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce)
	return nonce
}

// greet writes the asked side's greeting.
func greet(w io.Writer, nonce []byte) error {
	_, err := w.Write(append([]byte(magic), nonce...))
	return err
}

func greeted(r io.Reader) (nonce []byte, err error) {
	text := make([]byte, len(magic)+nonceSize)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, fmt.Errorf("read the greeting: %w", err)
	}
	if string(text[:len(magic)]) != magic {
		return nil, errMagic
	}
	return text[len(magic):], nil
}

// The purposes of a MAC. A message of one direction is never valid in the other.
const (
	asking     = "understudy agent: question"
	answering  = "understudy agent: answer"
	requesting = "understudy agent: ask for a promise"
	promising  = "understudy agent: promise"
)

// seal is the MAC over the parts, each with its length, so that no two lists of parts look the same.
func seal(secret []byte, purpose string, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(purpose))
	for _, part := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		mac.Write(size[:])
		mac.Write(part)
	}
	return mac.Sum(nil)
}

// send writes a body and its MAC.
func send(w io.Writer, body, mac []byte) error {
	if len(body) > maxBody {
		return errOversized
	}
	text := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)+len(mac)), uint32(len(body)))
	_, err := w.Write(append(append(text, body...), mac...))
	return err
}

// receive reads a body and its MAC, both unproved.
func receive(r io.Reader) (body, mac []byte, err error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, nil, fmt.Errorf("read the message: %w", err)
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxBody {
		return nil, nil, fmt.Errorf("%w: %d bytes", errOversized, n)
	}
	text := make([]byte, n+macSize)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, nil, fmt.Errorf("message cut short: %w", err)
	}
	return text[:n], text[n:], nil
}

// readQuestion decodes a question that has been proved.
func readQuestion(body []byte) (Question, error) {
	var q Question
	if err := json.Unmarshal(body, &q); err != nil {
		return Question{}, fmt.Errorf("read the question: %w", err)
	}
	switch {
	case !isName(q.Service):
		return Question{}, fmt.Errorf("%.100q is not a service name", q.Service)
	case !isName(q.Node) || !isName(q.By):
		return Question{}, errors.New("a node without a name")
	case q.Token <= 0:
		return Question{}, fmt.Errorf("%d is not a token", q.Token)
	case q.ByToken <= q.Token:
		return Question{}, fmt.Errorf("the asker's token %d is not newer than %d", q.ByToken, q.Token)
	case len(q.Nonce) != nonceSize:
		return Question{}, errors.New("no nonce")
	}
	return q, nil
}

// isName refuses names that could not be a znode's, would break a log's line, or lead elsewhere.
func isName(name string) bool {
	return name != "" && len(name) <= maxName && name[0] != '.' && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return r == '/' || !unicode.IsPrint(r) })
}
