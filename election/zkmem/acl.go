package zkmem

import (
	"crypto/sha1"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"understudy/election/jute"
)

// identity is one of the ids under which a connection is known.
type identity struct{ scheme, id string }

// digestID turns user:password into the id that ACLs carry.
func digestID(credential string) string {
	user, _, _ := strings.Cut(credential, ":")
	sum := sha1.Sum([]byte(credential))
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// allowed tells whether one of ids holds at least one of the permissions. A node without an ACL is open.
func allowed(acl []jute.ACL, perms int32, ids []identity) bool {
	if len(acl) == 0 {
		return true
	}
	for _, a := range acl {
		if a.Perms&perms == 0 {
			continue
		}
		if a.Scheme == "world" && a.ID == "anyone" {
			return true
		}
		for _, id := range ids {
			if id.scheme == a.Scheme && id.matches(a.ID) {
				return true
			}
		}
	}
	return false
}

func (i identity) matches(expr string) bool {
	switch i.scheme {
	case "digest":
		return i.id == expr
	case "ip":
		return matchesIP(i.id, expr)
	}
	return false
}

// resolveACL checks the ACL of a request and writes the scheme "auth" out as the ids of the caller.
func resolveACL(acl []jute.ACL, ids []identity) ([]jute.ACL, jute.Code) {
	var out []jute.ACL
	for i, a := range acl {
		if slices.Contains(acl[:i], a) {
			continue
		}
		switch {
		case a.Scheme == "world" && a.ID == "anyone":
			out = append(out, a)
		case a.Scheme == "auth":
			before := len(out)
			for _, id := range ids {
				if id.scheme == "digest" { // an address proves nothing: "ip" does not count as authenticated
					out = append(out, jute.ACL{Perms: a.Perms, Scheme: id.scheme, ID: id.id})
				}
			}
			if len(out) == before {
				return nil, jute.InvalidACL
			}
		case a.Scheme == "digest" && validDigestID(a.ID), a.Scheme == "ip" && validIP(a.ID):
			out = append(out, a)
		default:
			return nil, jute.InvalidACL
		}
	}
	if len(out) == 0 {
		return nil, jute.InvalidACL
	}
	return out, jute.OK
}

// validDigestID wants two parts as Java splits them: empty parts at the end do not count.
func validDigestID(id string) bool {
	parts := strings.Split(strings.TrimRight(id, ":"), ":")
	return len(parts) == 2
}

// parseIPv4 reads four decimal numbers; the real server knows no others, signs and leading zeros included.
func parseIPv4(s string) (ip [4]byte, ok bool) {
	parts := strings.Split(s, ".")
	if len(parts) != 4 {
		return ip, false
	}
	for i, part := range parts {
		v, err := strconv.Atoi(part)
		if err != nil || v < 0 || v > 255 {
			return ip, false
		}
		ip[i] = byte(v)
	}
	return ip, true
}

func parseNet(expr string) (ip [4]byte, bits int, ok bool) {
	addr, suffix, masked := strings.Cut(expr, "/")
	if ip, ok = parseIPv4(addr); !ok {
		return ip, 0, false
	}
	bits = 32
	if masked {
		var err error
		if bits, err = strconv.Atoi(suffix); err != nil || bits < 0 || bits > 32 {
			return ip, 0, false
		}
	}
	return ip, bits, true
}

func validIP(expr string) bool {
	_, _, ok := parseNet(expr)
	return ok
}

func matchesIP(addr, expr string) bool {
	want, bits, ok := parseNet(expr)
	have, ok2 := parseIPv4(addr)
	if !ok || !ok2 {
		return false
	}
	for i := range 32 {
		if i >= bits {
			return true
		}
		if (want[i/8]^have[i/8])&(0x80>>(i%8)) != 0 {
			return false
		}
	}
	return true
}

// masked hides the digests of an ACL from who may read the node but not administer it.
func masked(acl []jute.ACL) []jute.ACL {
	out := slices.Clone(acl)
	for i, a := range out {
		if a.Scheme == "digest" {
			user, _, _ := strings.Cut(a.ID, ":")
			out[i].ID = user + ":x"
		}
	}
	return out
}
