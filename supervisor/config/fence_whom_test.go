package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A breadcrumb is written by whoever can write ZooKeeper. What it would choose is mentioned, and what would choose nothing is not.
func TestWhatABreadcrumbWouldChooseIsMentioned(t *testing.T) {
	for method, want := range map[string]string{
		`http: {url: "https://bmc-{node}/off"}`:                                                 "url: the method will refuse: a breadcrumb would choose which server to ask",
		`http: {url: "https://{host}:8443/off"}`:                                                "url: the method will refuse: a breadcrumb would choose which server to ask",
		`http: {url: "https://cloud/{node}/stop"}`:                                              "url: fences any node that a breadcrumb names",
		`http: {url: "https://cloud/stop", body: "{\"id\": \"{host}\"}"}`:                       "url: fences any node that a breadcrumb names",
		`http: {url: "https://cloud/stop", headers: {X-Node: "{machine}"}}`:                     "url: fences any node that a breadcrumb names",
		`http: {url: "https://cloud/{node}/stop", plugs: {a: a}}`:                               "",
		`http: {url: "https://{plug}:8443/off", plugs: {a: 192.0.2.1}}`:                         "",
		`http: {url: "https://[{plug}]:8443/off", plugs: {a: "fd00::1"}}`:                       "",
		`http: {url: "https://cloud/stop?{service}&{token}"}`:                                   "",
		`http: {url: "https://cloud:{token}/stop"}`:                                             "a port cannot be filled in",
		`http: {url: "https://{address}/stop"}`:                                                 "a port cannot be filled in",
		`http: {url: "https://{plug}/", plugs: {a: ""}}`:                                        `plugs.a: missing: write the word for "a" there`,
		`http: {url: "https://{plug}/", plugs: {"-x": b}}`:                                      "a name must not start with -",
		`fence_agent: {command: f}`:                                                             "fence_agent: without plugs, the method switches off any node that a breadcrumb names",
		`fence_agent: {command: f, options: {ip: "bmc-{node}"}}`:                                "options.ip: the method will refuse: a breadcrumb would choose whom the agent asks",
		`fence_agent: {command: f, options: {ip: "{plug}"}, plugs: {a: 1.2.3.4}}`:               "",
		`fence_agent: {command: f, options: {ip: "{machine}"}, plugs: {a: b}}`:                  "options.ip: the method will refuse: a breadcrumb would fill in a word that plugs does not list",
		`fence_agent: {command: f, options: {ip: "{session}"}, plugs: {a: b}}`:                  "options.ip: the method will refuse: a breadcrumb would fill in a word that plugs does not list",
		`fence_agent: {command: f, options: {ip: "{host}-ipmi"}, plugs: {a: b}}`:                "options.ip: the method will refuse a node whose host",
		`fence_agent: {command: f, options: {ip: "{boot}"}}`:                                    "options.ip: the method will refuse: a breadcrumb would choose whom",
		`http: {url: "https://cloud/{machine}", plugs: {a: b}}`:                                 "url: the method will refuse: a breadcrumb would fill in a word that plugs does not list",
		`http: {url: "https://{boot}.x/", plugs: {a: b}}`:                                       "url: the method will refuse: a breadcrumb would fill in a word that plugs does not list",
		`http: {url: "https://{boot}.x/"}`:                                                      "url: the method will refuse: a breadcrumb would choose which server",
		`http: {url: "https://cloud/{plug}?{boot}", plugs: {a: b}}`:                             "",
		`http: {url: "https://cloud/", body: "{machine}", plugs: {a: b}}`:                       "body: the method will refuse: a breadcrumb would fill in a word that plugs does not list",
		`http: {url: "https://cloud/", headers: {host: "{session}"}, plugs: {a: b}}`:            "headers.host: the method will refuse: a breadcrumb would fill in a word that plugs does not list",
		`ssh: {user: root, key_file: /k, known_hosts: /h, address: "{host}:22", plugs: {a: b}}`: "address: the method will refuse a node whose host",
		`ssh: {user: root, key_file: /k, known_hosts: /h}`:                                      "",
		`exec: {command: [x]}`:                                                                  "",
	} {
		file := filepath.Join(t.TempDir(), "u.yaml")
		text := "zookeeper: {servers: [zk1]}\nservices:\n  s:\n    command: x\n    fencing:\n      methods:\n        - " + method + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := Read(file, "")
		var said []string
		for _, f := range append(r.Faults, r.Warnings...) {
			said = append(said, f.String())
		}
		if got := strings.Join(said, "\n"); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", method, got, want)
		}
	}
}
