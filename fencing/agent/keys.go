package agent

import (
	"crypto/hmac"
	"errors"
	"fmt"

	"understudy/supervisor/keyfile"
)

// LeastSecret is the least length of a secret, because an attacker could guess it offline.
const LeastSecret = 16

// Keys are by which the nodes of a cluster know one another. There is one of each file: so a config that is read again has not changed.
type Keys struct {
	Secrets func() ([][]byte, error) // the first one signs, each is accepted
}

// Shared is the keys of nodes that share one secret.
func Shared(secret []byte) *Keys {
	return &Keys{func() ([][]byte, error) { return [][]byte{secret}, nil }}
}

// KeysIn reads a file again when it changes. It tells failed why it cannot; then the previous content stays in force.
func KeysIn(file string, failed func(error)) *Keys {
	return &Keys{keyfile.Cached(func() ([][]byte, error) { return secretsIn(file) }, failed)}
}

func secretsIn(file string) ([][]byte, error) {
	lines, err := keyfile.Lines(file)
	if err != nil {
		return nil, err
	}
	all := make([][]byte, 0, len(lines))
	for _, line := range lines {
		if len(line) < LeastSecret {
			return nil, fmt.Errorf("%s holds less than %d characters", file, LeastSecret)
		}
		all = append(all, []byte(line))
	}
	return all, nil
}

var errNoKeys = errors.New("no secret: any client could ask")

// proved returns the secret with which a question of this purpose was sealed.
func proved(secrets [][]byte, purpose string, nonce, body, mac []byte) ([]byte, error) {
	for _, secret := range secrets {
		if hmac.Equal(mac, seal(secret, purpose, nonce, body)) {
			return secret, nil
		}
	}
	return nil, errForged
}
