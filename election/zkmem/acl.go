package zkmem

import (
	"crypto/sha1"
	"encoding/base64"
	"slices"
	"strings"

	"understudy/election/jute"
)

// digestID turns user:password into the id that ACLs carry.
func digestID(credential string) string {
	user, _, _ := strings.Cut(credential, ":")
	sum := sha1.Sum([]byte(credential))
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// allowed reports whether one of ids holds at least one of the permissions. A node without an ACL is open.
func allowed(acl []jute.ACL, perms int32, ids []string) bool {
	return len(acl) == 0 || slices.ContainsFunc(acl, func(a jute.ACL) bool {
		return a.Perms&perms != 0 && (a.Scheme == "world" && a.ID == "anyone" || a.Scheme == "digest" && slices.Contains(ids, a.ID))
	})
}

// resolveACL checks the ACL of a request and writes the scheme "auth" out as the ids of the caller.
func resolveACL(acl []jute.ACL, ids []string) ([]jute.ACL, jute.Code) {
	var out []jute.ACL
	for i, a := range acl {
		if slices.Contains(acl[:i], a) {
			continue
		}
		switch {
		case a.Scheme == "world" && a.ID == "anyone":
			out = append(out, a)
		case a.Scheme == "auth":
			for _, id := range ids {
				out = append(out, jute.ACL{Perms: a.Perms, Scheme: "digest", ID: id})
			}
			if len(ids) == 0 {
				return nil, jute.InvalidACL
			}
		case a.Scheme == "digest" && validDigestID(a.ID):
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
