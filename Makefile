# One list of the nested modules: each exists to keep its dependencies out of the root's go.mod.
NESTED := tools adapters/gocron adapters/otel adapters/prometheus adapters/sqlfence adapters/readiness adapters/lockprofile adapters/goose adapters/migrate adapters/certmagic adapters/caddy adapters/leaderelection adapters/kerberos adapters/certmagic/test adapters/caddy/test adapters/gocron/test adapters/goose/test adapters/leaderelection/test adapters/otel/test adapters/prometheus/test adapters/sqlfence/test cmd/zklock/browser cmd/zklock/kerberos internal/evidence/crons compare integration zkcontainer

nested  := $(patsubst %/go.mod,%,$(wildcard $(NESTED:%=%/go.mod)))
modules := . $(nested)

# The pinned checkers are built from tools/go.mod: $(call tool,PACKAGE) builds one, as bin/NAME.
tool = go build -C tools -o $(CURDIR)/bin/ $(1)

FUZZTIME ?= 60s
SOAK     ?= 10m
SESSIONS ?= 1h
ROUNDS   ?= 3
CROWD    ?= 10000
CLIENTS  ?= 1000
LOAD     ?= 1
OVER     ?= 0s
IDLE     ?= 3m
SEED     ?= 1
SEEDS    ?= 300
ARGS     ?=

# As a Go command, so that its checksum is known before it runs. Needs no newer Go than the rest.
GORELEASER := go run github.com/goreleaser/goreleaser/v2@v2.13.3

.DEFAULT_GOAL := help
.PHONY: help fmt lint gofmt analyze vulncheck tidy workflows test test-all test-unit test-integration race fuzz suites parity sessions availability idle soak scale fleet crowd mutants yields survivors model crowd compare duel report promises picture screenshots bench man apidiff resolve image snapshot reproducible release

help: ## show this list
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

fmt: ## format all Go files
	gofmt -w $$(git ls-files -co --exclude-standard '*.go')

lint: gofmt analyze tidy workflows vulncheck ## gofmt, vet's and staticcheck's analyzers, tidy modules, workflow files, known vulnerabilities

gofmt:
	@bad=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	[ -z "$$bad" ] || { echo "gofmt: run 'make fmt' for:"; echo "$$bad"; exit 1; }

analyze:
	$(call tool,./lint)
	bin/lint $(modules)

tidy:
	@set -e; for m in $(modules); do echo "tidy $$m"; (cd $$m && go mod tidy -diff); done

# Without the checkers of shell and Python that some machines have and others do not.
workflows:
	$(call tool,github.com/rhysd/actionlint/cmd/actionlint)
	bin/actionlint -shellcheck= -pyflakes=

# With VULNCHECK_SOURCE=1, from the calls in the code rather than from the versions.
vulncheck:
	$(call tool,golang.org/x/vuln/cmd/govulncheck)
	tools/vulncheck $(CURDIR)/bin/govulncheck $(modules)

test: ## the tests of a commit, side by side: this module, nested ones, real servers
	@go run ./internal/evidence/lanes $(nested)

test-all: ## all tests: also those that take long or that few commits can break
	@go run ./internal/evidence/lanes -all $(nested)

test-unit: ## the tests that need no server and no container
	@go run ./internal/evidence/lanes -all -only 'command|library|modules' $(nested)

test-integration: ## the tests on real servers only
	@go run ./internal/evidence/lanes -all -only 'servers|containers' $(nested)

race: ## this module's tests under the race detector
	go test -race -timeout 20m ./...

fuzz: ## every fuzz target of this module and of adapters/kerberos for FUZZTIME (60s) each
	@set -e; for m in . adapters/kerberos; do cd $(CURDIR)/$$m; for p in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	    echo "$$f ($$p)"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5s $$p; \
	  done; \
	done; done

suites: ## other projects' own tests on zktest: go-zookeeper's, and kazoo's where Debian's packages of it and pytest are
	go test ./internal/evidence/suites -v -timeout 40m -count 1 -args -suites

parity: ## SEEDS (300) random sequences to ZooKeeper 3.8 and 3.9 and to zktest, and all rules; needs containers
	integration/setup
	@set -e; for v in 3.8 3.9; do \
	  (cd integration && ZKLOCK_TEST_ZOOKEEPER=$$v ZKLOCK_PARITY_SEEDS=$(SEEDS) go test -timeout 60m -count 1 -v -run '^TestParity$$'); \
	done

sessions: ## how short a session may be here: holds for SESSIONS (1h) with timeouts of 0.6 to 4 s on real servers; needs containers
	integration/setup
	cd integration && go test -timeout 0 -count 1 -v -run '^TestHowShortASessionMayBe$$' -args -sessions $(SESSIONS)

availability: ## how many holds are lost when a client's server fails and the others keep running, for ROUNDS (3) on 3.8 and 3.9; needs containers
	integration/setup
	@set -e; for v in 3.8 3.9; do \
	  (cd integration && ZKLOCK_TEST_ZOOKEEPER=$$v go test -timeout 0 -count 1 -v -run '^TestAServerThatFailsCostsNoHold$$' -args -availability $(ROUNDS)); \
	done

fleet: ## 400 clients of a server over TLS that lose their connections at once; needs containers and a quiet machine
	cd zkcontainer && go test -timeout 20m -count 1 -v -run '^TestHoldersOfASlowServerKeepTheirHoldsOverTLS$$' -args -fleet

crowd: ## CROWD (10000) waiters in one queue on three servers: how they join, and what a hand-off takes; needs containers
	integration/setup
	cd integration && go test -timeout 0 -count 1 -v -run '^TestACrowdDrainsInOrder$$' -args -crowd $(CROWD)

idle: ## a follower and a leader that are cut off, with clients that did nothing for IDLE (3m) before, on 3.8 and 3.9; needs containers
	integration/setup
	@set -e; for v in 3.8 3.9; do \
	  (cd integration && ZKLOCK_TEST_ZOOKEEPER=$$v go test -timeout 0 -count 1 -v -run '^TestStale' -args -idle $(IDLE)); \
	done

scale: ## a fleet of CLIENTS (1000), each of which stands for LOAD (1), with ten times as many waiters, simulated with servers that have one processor each; OVER (0s) is the time in which all processes start again
	go test ./internal/evidence/scale -v -cpu 1 -timeout 0 -count 1 -run '^TestEveryLockOfAFleetIsHeldAgain$$' -args -clients $(CLIENTS) -load $(LOAD) -over $(OVER)

soak: ## the fleet simulator for SOAK (10m) of random seeds
	go test ./internal/evidence/sim -run '^TestSoak$$' -v -timeout 0 -count 1 -args -soak=$(SOAK) $(ARGS)

mutants: ## find every deliberate defect, with the simulator or a test of its own (ARGS="-only pattern")
	go test ./internal/evidence/sim/mutants -run '^TestEveryMutantIsFound$$' -v -timeout 0 -count 1 -args -all $(ARGS)

yields: ## tests and the simulator while goroutines change between the library's statements, from seed SEED (1) on (ARGS="-seeds 10 -only session")
	go test ./internal/evidence/yields -run '^TestNoYieldBreaksAPromise$$' -v -timeout 0 -count 1 -args -all -seed $(SEED) $(ARGS)

survivors: ## change the product code in one place at a time, and print the changes that no test notices (ARGS="-only internal/frames", "-own", "-budget 10m -seed 2")
	go run ./internal/evidence/survivors $(ARGS)

model: ## check the Promela models of the recipe and the lease with spin
	internal/evidence/model/check

compare: ## measure the other ways to lock (ARGS="--quick", "--only uncontended"); writes compare/comparison.md
	compare/setup
	cd compare && nice go run . $(ARGS)

duel: ## measure this library and the Go client's own lock; writes compare/duel.md
	compare/setup
	cd compare && go run . duel $(ARGS)

report: ## when holders learn of a loss under nine faults (ARGS="--rounds 1", "--clients zklock"); writes compare/report.md
	compare/setup
	cd compare && nice go run . faults $(ARGS)

promises: ## which tests back each promise (ID=P2.1 prints a pattern for go test -run)
	@go run ./internal/evidence/docs/promises $(ID)

picture: ## draw the README's picture of the demo
	go run ./internal/evidence/docs/picture docs/demo.svg

screenshots: ## draw the documents' pictures of `zklock web`; needs a Chromium
	cmd/zklock/browser/setup
	cd cmd/zklock/browser && go test -count 1 -run '^TestPictures$$' -args -pictures $(CURDIR)/docs

bench: ## benchmarks of this module
	go test -run '^$$' -bench . -benchmem ./...

man: ## the command's manual page and completions, into bin/
	@mkdir -p bin
	go run ./cmd/zklock man > bin/zklock.1
	for shell in bash zsh fish; do go run ./cmd/zklock completion $$shell > bin/zklock.$$shell || exit 1; done

apidiff: ## what has changed in the exported surface since the last tag; fails on what breaks callers
	@tools/apidiff

resolve: ## what a first release needs: each published module can be downloaded by its tag alone
	go run -C tools ./resolve v0.1.0

image: ## a container image of the command, from nothing but its binary
	CGO_ENABLED=0 GOOS=linux go build -trimpath -ldflags '-s -w' -o bin/zklock ./cmd/zklock
	docker build -q -t zklock .

snapshot: ## what a release would have, in dist/, without publishing or signing anything
	$(GORELEASER) release --snapshot --clean --skip=sign $(ARGS)

reproducible: ## build a snapshot twice, and compare: checksums.txt has a line for each file
	$(MAKE) snapshot
	cp dist/checksums.txt bin/checksums.txt
	$(MAKE) snapshot
	diff bin/checksums.txt dist/checksums.txt

release:
	$(GORELEASER) release --clean
