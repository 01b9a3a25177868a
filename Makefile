VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME ?= 20s
HOURS    ?= 200
TOOL     := go tool -modfile=packaging/tools/go.mod

.DEFAULT_GOAL := help
.PHONY: help build test lint model simulate bench fuzz clean

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the binary ./understudy, static
	CGO_ENABLED=0 go build -trimpath -ldflags '-X main.version=$(VERSION)' -o understudy .

test: ## install what the tests need, then run all of them
	packaging/test.sh

lint: ## golangci-lint, as pinned in packaging/tools
	$(TOOL) golangci-lint run ./...

simulate: ## virtual hours (HOURS=200) of faults, with every promise checked after each step
	go test -tags simulation ./supervisor/sim -count=1 -v -timeout 24h -run ThePromises -hours $(HOURS)

model: ## check the protocol's model with spin
	docs/model/check.sh

bench: ## hand-over times and idle cost, beside what ZooKeeper alone takes
	go run ./supervisor/e2e/bench

fuzz: ## every fuzz target for FUZZTIME (20s)
	FUZZTIME=$(FUZZTIME) packaging/fuzz.sh

clean: ## remove what was built
	rm -rf understudy dist
