package fencing

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// Statement is the target's own machine's statement about the target.
type Statement struct {
	Dead  bool   `json:"dead"`
	How   string `json:"how,omitempty"`   // how the death was proved
	Alive bool   `json:"alive,omitempty"` // it was seen, and could not be ended
	Why   string `json:"why,omitempty"`   // why it is not called dead
	// Left names effects that are not undone: then it is not called dead, though none of its processes is left.
	Left []string `json:"effects_left,omitempty"`
	// Undone says that nothing is left of what survives a boot either: an older version does not know that anything may.
	Undone  bool   `json:"undone,omitempty"`
	Service string `json:"service"`
	Token   int64  `json:"token"`
	Node    string `json:"node,omitempty"`
	Machine string `json:"machine,omitempty"`
	Boot    string `json:"boot"`
}

// ErrNotDead says that the target's machine has answered without a proof: another question is useless for a while.
var ErrNotDead = errors.New("not called dead")

// Convinces returns nil if the statement says that the target is dead, and comes from the target's machine. The caller has
// authenticated its author.
func (s Statement) Convinces(t Target) error {
	switch {
	case !s.Dead && len(s.Left) > 0:
		return fmt.Errorf("%w: %w", ErrNotDead, &NotUndone{s.Left})
	case !s.Dead && s.Alive:
		return fmt.Errorf("%w: %w: %s", ErrNotDead, ErrAlive, s.Why)
	case !s.Dead:
		return fmt.Errorf("%w: %s", ErrNotDead, s.Why)
	case s.Service != t.Service || s.Token != t.Token:
		return fmt.Errorf("%w: it is about token %d of %s", ErrNotDead, s.Token, s.Service)
	case s.Machine != t.Machine || s.Boot == "":
		return fmt.Errorf("%w: it comes from another machine", ErrNotDead)
	case s.Boot != t.Boot && len(t.Survive) > 0 && !s.Undone:
		return fmt.Errorf("%w: it has booted since, and does not know what survives that", ErrNotDead)
	case s.Boot != t.Boot && (s.Machine == "" || s.Node != t.Node):
		return fmt.Errorf("%w: it comes from another boot, and perhaps from another machine", ErrNotDead)
	}
	return nil
}

// Encode turns a target into one word that every shell leaves as it is.
func (t Target) Encode() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // a tree is valid JSON, since it was read from JSON
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// DecodeTarget is the counterpart of Encode.
func DecodeTarget(word string) (t Target, err error) {
	const longest = 32 << 10
	if len(word) > longest {
		return t, errors.New("read the target: it is too long")
	}
	text, err := base64.RawURLEncoding.DecodeString(word)
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil {
		return Target{}, fmt.Errorf("read the target: %w", err)
	}
	return t, nil
}
