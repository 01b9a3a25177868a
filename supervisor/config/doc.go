// Package config reads the YAML file that says what a supervisor runs, and is the only importer of a YAML library.
//
// It promises:
//   - Everything wrong is reported at once, as Faults, each with file, line, column and key; a file with one fault is
//     refused as a whole, with all that it includes.
//   - What is returned has every default filled in and has passed Validate; Marshal writes it so that Read reads back
//     the same. It holds no positions, and what has no effect is left out of it: equal configurations compare equal.
//   - Nothing is expanded: no variables, no globs but those of include, no shell. A scalar means its literal text.
//   - No input makes it panic, and none makes it work for longer than the file's size explains.
//   - No fault, no warning and nothing that is written shows a secret or a line of an env file.
//
// It does not promise that what is named exists: programs, directories, users and secrets are looked at when they are
// needed. Result.Here looks earlier, on request.
//
// A new key is one field of a struct: it is read, written, suggested for misspelt ones and described in the schema and
// in docs/config.md by its name and tags. Its section's method check, in the same file, says
// what its value may be.
package config
