// Package config reads the YAML file that says what a supervisor runs, and is the only importer of a YAML library.
//
// It promises:
//   - All faults are reported at once, each with file, line, column and key; a file with one fault is refused as a whole,
//     with all files that it includes.
//   - The result has every default filled in and has passed Validate; Marshal writes it so that Read reads back the same.
//     It holds no positions and no settings without effect: equal configurations compare equal.
//   - Nothing is expanded: no variables, no globs but those of include, no shell. A scalar means its literal text.
//   - No input makes it panic, and none makes it work for longer than the file's size explains.
//   - No fault, no warning and no output shows a secret or a line of an env file.
//
// It does not promise that the named programs, directories, users and secrets exist: the supervisor looks them up when it needs
// them. LoadResult.Here looks earlier, on request.
//
// A new key is one field of a struct: it is read, written, suggested for misspelt ones and described in the schema and
// in docs/config.md by its name and tags. The method check of its section, in the same
// file, says which values are allowed.
package config
