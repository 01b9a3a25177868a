package config

import "strings"

// otherNames has what other programs call the lease.
var otherNames = strings.NewReplacer("session_timeout", "lease", "session-timeout", "lease")

// DidYouMean is ` (did you mean "x"?)` for the nearest of the words, or nothing when none is near.
func DidYouMean(word string, words []string) string {
	word = otherNames.Replace(word)
	best, least := "", min(max(1, len(word)/3)+1, len(word))
	for _, w := range words {
		if d := distance(strings.ToLower(word), strings.ToLower(w)); d < least {
			best, least = w, d
		}
	}
	if best == "" {
		return ""
	}
	return ` (did you mean "` + best + `"?)`
}

// distance is how many insertions, deletions, replacements and swaps of neighbours make b of a.
func distance(a, b string) int {
	const far = 1 << 20
	if len(a) > 64 || len(b) > 64 {
		return far
	}
	var before, above []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, above, row = above, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := above[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(above[j]+1, row[j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}

// oneOf is "a, b or c".
func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
