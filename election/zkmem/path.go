package zkmem

import "strings"

// validPath applies the rules that the real server has for the path of a node.
func validPath(p string) bool {
	if p == "/" {
		return true
	}
	if p == "" || p[0] != '/' || p[len(p)-1] == '/' {
		return false
	}
	for name := range strings.SplitSeq(p[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return false
		}
	}
	return !strings.ContainsFunc(p, forbidden)
}

// forbidden are control characters and, the real server counting in UTF-16, surrogates and what is beyond them.
// Bytes that are not UTF-8 arrive here as U+FFFD.
func forbidden(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}

// parentOf splits a path at its last slash; the parent of "/a" is "", another name of the root. No slash or a NUL is
// what the server refuses before it looks any closer.
func parentOf(p string) (parent, name string, ok bool) {
	i := strings.LastIndexByte(p, '/')
	if i < 0 || strings.IndexByte(p, 0) >= 0 {
		return "", "", false
	}
	return p[:i], p[i+1:], true
}

// special paths cannot be deleted.
func special(p string) bool {
	switch p {
	case "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config":
		return true
	}
	return false
}
