package config

import "understudy/supervisor/keyfile"

// ReadSecret reads a file that holds one secret and trims the newline at its end. The warning, when not empty, says
// that the file's mode lets others at it.
func ReadSecret(name string) (secret, warning string, err error) { return keyfile.Line(name) }
