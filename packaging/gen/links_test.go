package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"understudy/supervisor/testbed/must"
)

// pages are all pages for readers, by their path from the root of the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*.md", "packaging/ansible/*.md"} {
		names, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("no pages %s: %v", pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			must.OK(t, err)
			all[strings.TrimPrefix(name, "../../")] = string(text)
		}
	}
	return all
}

var (
	linkForm  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	codeBlock = regexp.MustCompile("(?s)\n *```.*?\n *```")
)

// A link of a page leads to a file that exists, and to a heading in it.
func TestLinksLead(t *testing.T) {
	all := pages(t)
	for page, text := range all {
		for _, link := range linkForm.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
			file, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			to := page
			if file != "" {
				to = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(filepath.Join("..", "..", to)); err != nil {
				t.Errorf("%s: %s leads to no file", page, link[1])
			} else if anchor != "" && !slices.Contains(anchors(all[to]), anchor) {
				t.Errorf("%s: %s leads to no heading", page, link[1])
			}
		}
	}
}

// anchors are the names that a page's headings have in links.
func anchors(page string) (all []string) {
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(codeBlock.ReplaceAllString(page, ""), -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N}\- _]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}

// Who begins at the index finds every page of docs, and every example at the list of examples; and the packages have them all.
func TestEveryPageAndExampleIsListed(t *testing.T) {
	packages, err := os.ReadFile("../nfpm.yaml")
	must.OK(t, err)
	packed := regexp.MustCompile(`"(\S+/)\*(\.md|\.\{\S+\}|)",`).FindAllStringSubmatch(string(packages), -1)
	isPacked := func(name string) bool {
		return slices.ContainsFunc(packed, func(m []string) bool {
			ends := strings.Split(strings.Trim(m[2], ".{}"), ",")
			return filepath.Dir(name)+"/" == m[1] && (m[2] == "" || slices.Contains(ends, strings.TrimPrefix(filepath.Ext(name), ".")))
		})
	}
	for index, patterns := range map[string][]string{"docs/README.md": {"docs/*.md"}, "examples/README.md": {"examples/*", "examples/conf.d/*"}} {
		text := pages(t)[index]
		for _, pattern := range patterns {
			names, err := filepath.Glob(filepath.Join("..", "..", pattern))
			must.OK(t, err)
			for _, name := range names {
				path, err := filepath.Rel(filepath.Join("..", "..", filepath.Dir(index)), name)
				if stat, statErr := os.Stat(name); err != nil || statErr != nil || stat.IsDir() || path == filepath.Base(index) {
					continue
				}
				if !strings.Contains(text, "]("+path+")") && !strings.Contains(text, "]("+path+"#") {
					t.Errorf("%s does not list %s", index, path)
				}
				if name := strings.TrimPrefix(name, "../../"); !isPacked(name) {
					t.Errorf("packaging/nfpm.yaml does not pack %s", name)
				}
			}
		}
	}
}

// Each word that `status` shows for a role or a health is in the glossary.
func TestEveryRoleAndHealthIsExplained(t *testing.T) {
	source, err := os.ReadFile("../../election/words.go")
	must.OK(t, err)
	words := regexp.MustCompile(`\t(?:Role|Health)\w+ +(?:Role|Health) += "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(words) < 15 {
		t.Errorf("only %d words were found", len(words))
	}
	for _, word := range words {
		if !strings.Contains(pages(t)["docs/operations.md"], "\n| `"+word[1]+"` |") {
			t.Errorf("docs/operations.md does not explain %q", word[1])
		}
	}
}

// Each reason that `history` shows in the column ENDED is explained.
func TestEveryEndInTheHistoryIsExplained(t *testing.T) {
	source, err := os.ReadFile("../../election/words.go")
	must.OK(t, err)
	reasons := regexp.MustCompile(`\t\w+ +Reason += "([^"]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(reasons) < 15 {
		t.Errorf("only %d reasons were found", len(reasons))
	}
	for _, reason := range reasons {
		shown := strings.ReplaceAll(reason[1], "child", "program") // as `history` does
		if !strings.Contains(pages(t)["docs/operations.md"], "\n| `"+shown) {
			t.Errorf("docs/operations.md does not explain %q", shown)
		}
	}
}
