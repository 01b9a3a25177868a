VERSION   ?= $(shell packaging/version.sh 2>/dev/null || echo dev)
FUZZTIME  ?= 20s
HOURS     ?= 200
FAILOVERS ?= 1000
FAULTS    ?= 30
PROGRAM   ?= redis
MINUTES   ?= 5
BUILDAH   ?= buildah
TOOL      := go tool -modfile=packaging/tools/go.mod

.DEFAULT_GOAL := help
.PHONY: help build image packages release test test-all test-rest test-packages lint model simulate sabotage chaos picture bench compare soak replicated fuzz clean

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the binary ./understudy, static
	CGO_ENABLED=0 go build -trimpath -ldflags '-X main.version=$(VERSION)' -o understudy .

image: build ## the container image understudy:VERSION, with buildah (or BUILDAH=podman, BUILDAH=docker)
	$(BUILDAH) build -t understudy:$(subst ~,.,$(subst +,.,$(VERSION))) -f packaging/Containerfile .

packages: ## deb and rpm, for amd64 and arm64, in dist/packages
	$(if $(filter command line environment,$(origin VERSION)),VERSION=$(VERSION)) packaging/build.sh dist/packages

release: ## all that a release has, in dist/release, built twice and compared: VERSION=0.1.0
	packaging/release.sh $(if $(filter command line environment,$(origin VERSION)),$(VERSION))

test: ## every promise, in 6 minutes: all packages, and real ZooKeeper servers in network namespaces; installs these (Debian)
	packaging/test.sh

test-all: ## everything, in half an hour; installs what that takes: PostgreSQL, a browser, an emulator ... (Debian)
	packaging/test.sh install
	$(MAKE) test
	$(MAKE) test-rest
	$(MAKE) test-packages

test-rest: ## what `make test` leaves to test-all: operators, real programs, the page in a browser, a machine with a watchdog
	packaging/test.sh rest

test-packages: ## build packages and image; install, upgrade, fail over and remove them on Debian machines that boot, and in containers
	packaging/test.sh packages

lint: ## golangci-lint, as pinned in packaging/tools
	$(TOOL) golangci-lint run ./...
	cd supervisor/testbed/page && go tool -modfile=$(CURDIR)/packaging/tools/go.mod golangci-lint run ./...

simulate: ## virtual hours (HOURS=200, from SEED=1) of faults, every promise checked after each step; RACE=-race: with the race detector
	mkdir -p dist
	go test $(if $(RACE),-race -cpu 1) ./supervisor/testbed/sim -count=1 -v -timeout 0 -run 'ThePromises|TheSameRunAgain' -exact -hours $(HOURS) $(if $(SEED),-seed $(SEED)) -report $(CURDIR)/dist/simulation.txt

sabotage: ## break the code in every way that the simulation has to notice, and print which promise did; PART=1/3: a third of the ways
	go test ./supervisor/testbed/sim -count=1 -v -timeout 1h -run 'SabotageIsCaught|AFailure' -sabotage all $(if $(PART),-sabotage-part $(PART))

chaos: ## MINUTES (5) of faults on three nodes and real servers, from one SEED; leaves dist/chaos/report.txt
	PATH="$$PATH:/usr/sbin:/sbin" go run ./supervisor/testbed/chaos -dir dist/chaos -minutes $(MINUTES) $(if $(SEED),-seed $(SEED))

model: ## check the protocol's models with spin
	docs/model/check.sh

picture: build ## docs/pictures/demo.svg, from what the demo prints
	mkdir -p dist && go run ./packaging/picture ./understudy demo >dist/demo.svg && mv dist/demo.svg docs/pictures/demo.svg

bench: ## switchover times and idle cost, beside what ZooKeeper alone takes
	go run ./supervisor/testbed/bench

compare: ## the same faults for Understudy and its peers, as far as they are installed, at most 30 minutes; PART=programs, addresses or replicated
	PATH="$$PATH:/usr/sbin:/sbin" go run ./supervisor/testbed/compare $(if $(PART),-part $(PART))

soak: ## failovers (FAILOVERS=1000) in a row on real servers, and a count of what they leave behind
	PATH="$$PATH:/usr/sbin:/sbin" go test ./supervisor/testbed/soak -count=1 -v -timeout 24h -run NothingIsLeaked -failovers $(FAILOVERS)

replicated: ## FAULTS (30, at most 25 minutes of them, from one SEED) on three copies of Redis, or PROGRAM=redis-aof, postgresql or mariadb: what is lost, gaps
	PATH="$$PATH:/usr/sbin:/sbin" go test ./supervisor/testbed/programs -count=1 -v -timeout 1h -run NothingIsLostInALongRun -faults $(FAULTS) -program $(PROGRAM) $(if $(SEED),-seed $(SEED))

fuzz: ## every fuzz target for FUZZTIME (20s)
	FUZZTIME=$(FUZZTIME) packaging/fuzz.sh

clean: ## remove what was built
	rm -rf understudy dist
