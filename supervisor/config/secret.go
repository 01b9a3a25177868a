package config

import "understudy/supervisor/keyfile"

// ReadSecret reads a file that holds one secret and trims the newline at its end.
func ReadSecret(name string) (secret string, err error) { return keyfile.Line(name) }
