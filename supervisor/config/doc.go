// Package config reads the YAML file that says what a supervisor runs, and is the only importer of a YAML library.
//
// It promises:
//   - Everything wrong is reported at once, as Faults, each with file, line, column and key; a file with one fault is
//     refused as a whole.
//   - What is returned has every default filled in and has passed Validate; Marshal writes it so that Load reads back
//     the same.
//   - Nothing is expanded: no variables, no globs, no shell. A scalar means its literal text.
//   - No input makes it panic, and none makes it work for longer than the file's size explains.
//
// It does not promise that what is named exists: programs, directories and secrets are looked at when they are needed.
package config
