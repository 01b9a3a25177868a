package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// isNotice tells whether a module's file says under which terms it is handed on.
func isNotice(name string) bool {
	name = strings.ToUpper(name)
	return strings.HasPrefix(name, "LICENSE") || strings.HasPrefix(name, "COPYING") || strings.HasPrefix(name, "NOTICE")
}

// known are the licences that occur, by SPDX's names and by words that are in no other one. A text may be of several.
var known = []struct {
	id    string
	words *regexp.Regexp
}{
	{"Apache-2.0", regexp.MustCompile(`Apache License,? Version 2\.0`)},
	{"MIT", regexp.MustCompile(`Permission is hereby granted, free of charge, to any person obtaining a copy`)},
	{"BSD-3-Clause", regexp.MustCompile(`Redistribution and use in source and binary forms.*(Neither the name|names? of (its|the) contributors may)`)},
	{"MPL-2.0", regexp.MustCompile(`Mozilla Public License,? [Vv]ersion 2\.0`)},
	{"ISC", regexp.MustCompile(`Permission to use, copy, modify, and(/or)? distribute this software for any purpose`)},
}

var blanks = regexp.MustCompile(`\s+`)

// licences are those of what is in a folder. One that is not known is an error: somebody has to read it.
func licences(what, dir string) (ids []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() || !isNotice(e.Name()) || strings.HasPrefix(strings.ToUpper(e.Name()), "NOTICE") {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		text, found := blanks.ReplaceAllString(string(raw), " "), false
		for _, l := range known {
			if l.words.MatchString(text) {
				ids, found = append(ids, l.id), true
			}
		}
		if !found {
			return nil, fmt.Errorf("%s: nobody has said yet which licence %s is", what, e.Name())
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%s comes without a licence", what)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
