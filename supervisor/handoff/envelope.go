package handoff

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/host"
	"understudy/supervisor/service"
	"understudy/supervisor/unit"
)

// version is the envelope's. It changes when an image that does not know a new field must not ignore it, as that of copies.
const version, versionCopies = 3, 4

// Versions are those that this image goes on with.
func Versions() []int { return []int{version, versionCopies} }

// Envelope is what one image of a supervisor leaves to the next.
type Envelope struct {
	Version  int                       `json:"version"`
	Node     string                    `json:"node"`
	Root     string                    `json:"root"`
	Servers  []string                  `json:"servers"`
	Since    time.Time                 `json:"since"`
	Build    string                    `json:"build,omitempty"` // the version of the program that writes it
	Epoch    uint64                    `json:"epoch"`
	Commands uint64                    `json:"commands"` // that were run outside any session
	Session  election.CarriedSession   `json:"session"`
	Guard    json.RawMessage           `json:"guard"`
	Births   map[string]election.Birth `json:"births,omitempty"`
	Services []service.CarriedService  `json:"services"`
}

// Open reads an envelope, and refuses one that is not for this supervisor.
func Open(raw []byte, node, root string, servers []string) (*Envelope, error) {
	var e Envelope
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, fmt.Errorf("read the state of the previous version: %w", err)
	}
	if !slices.Contains(Versions(), e.Version) {
		return nil, fmt.Errorf("the state of the previous version has version %d, known here: %v", e.Version, Versions())
	}
	if e.Node != node || e.Root != root || !slices.Equal(e.Servers, servers) {
		return nil, fmt.Errorf("the state of the previous version belongs to node %s under %s at %v", e.Node, e.Root, e.Servers)
	}
	return &e, nil
}

// Find looks the trees and processes of all services up in a guard that was handed over.
func (e *Envelope) Find(adopted func(tree json.RawMessage) (host.Tree, bool), log hclog.Logger) error {
	for i := range e.Services {
		if err := e.Services[i].Find(adopted, log); err != nil {
			return fmt.Errorf("go on with %s: %w", e.Services[i].Name, err)
		}
	}
	return nil
}

// number notes the envelope's version, and returns how many trees each lease has.
func (e *Envelope) number() map[uint64]int {
	trees := map[uint64]int{e.Epoch: 0}
	e.Version = version
	for _, r := range e.Services {
		if r.Term != nil {
			trees[e.Epoch] += r.Term.Trees()
		}
		if r.Copy != nil {
			trees[r.Copy.Lease], e.Version = r.Copy.Trees(), versionCopies
		}
	}
	return trees
}

func (e *Envelope) runs() (all []*unit.CarriedRun) {
	for _, r := range e.Services {
		all = append(all, r.Runs()...)
	}
	return all
}

// Running names the services of which programs are handed over.
func (e *Envelope) Running() (names []string) {
	for _, r := range e.Services {
		if len(r.Runs()) > 0 {
			names = append(names, r.Name)
		}
	}
	slices.Sort(names)
	return names
}
