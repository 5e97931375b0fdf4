# The tools are built into .bin, at these versions, when they are missing.
GOLANGCI_LINT_VERSION := v2.12.2
GOTESTSUM_VERSION     := v1.13.0
ACTIONLINT_VERSION    := v1.7.12
APIDIFF_VERSION       := v0.0.0-20261014143641-f0251eb4aa3e

BIN           := $(CURDIR)/.bin
GOLANGCI_LINT := $(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION)
GOTESTSUM     := $(BIN)/gotestsum-$(GOTESTSUM_VERSION)
ACTIONLINT    := $(BIN)/actionlint-$(ACTIONLINT_VERSION)
APIDIFF       := $(BIN)/apidiff-$(APIDIFF_VERSION)
TESTRUN       := $(BIN)/testrun

MODULES := . observe/prometheus observe/otel integration integration/orms examples
# Modules that compile another system, or start clusters of servers; make lanes runs them.
LANES := integration/clusters integration/vitess
# What make tidb runs, as TiDB takes half an hour to compile.
TIDB := integration/tidb

.DEFAULT_GOAL := help

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: check
check: format vet lint $(GOTESTSUM) ## format, vet, lint, import rules and the tests without servers (under 2 minutes)
	CGO_ENABLED=0 $(GOTESTSUM) --format pkgname -- -timeout=30m ./...

.PHONY: test
test: $(GOTESTSUM) $(TESTRUN) ## everything, as in CI: under the race detector, without cgo, on real servers; installs what is missing
	@.ci/install-missing
	@.ci/install-mysql
	@.ci/install-spider
	@.ci/install-newest-postgres >/dev/null
	$(TESTRUN) serve $(GOTESTSUM) --format pkgname --raw-command -- .ci/all-tests

.PHONY: soak
soak: export SHARDID_SOAK := 1
soak: export TEST_SILENCE := 6h
soak: $(GOTESTSUM) $(TESTRUN) ## the long programme: every test with its larger numbers, and the lanes; see docs/soak.md
	@.ci/install-missing
	@.ci/install-mysql
	@.ci/install-spider
	@.ci/install-newest-postgres >/dev/null
	$(TESTRUN) serve $(GOTESTSUM) --format pkgname --raw-command -- .ci/all-tests -count=1
	$(MAKE) lanes

.PHONY: lanes
lanes: ## Vitess' own code and servers, which it compiles, clusters and proxies (12 minutes); run before each release
	@.ci/install-missing
	@.ci/install-mysql
	@.ci/install-router
	@.ci/install-built vitess vitess.io/vitess
	@for module in $(LANES); do (cd $$module && CGO_ENABLED=0 go test -count=1 -timeout=2h -v ./...) || exit 1; done

.PHONY: tidb
tidb: ## a real TiDB, which it compiles (34 minutes once, then a minute); see docs/soak.md
	@.ci/install-built tidb github.com/pingcap/tidb
	cd $(TIDB) && CGO_ENABLED=0 go test -count=1 -v ./...

.PHONY: bench
bench: ## our speed beside that of others; writes BENCHMARKS.md (about 15 minutes)
	.ci/bench BENCHMARKS.md

.PHONY: apidiff
apidiff: $(APIDIFF) ## what would not compile any more with a program that compiled with the last version
	.ci/apidiff $(APIDIFF)

.PHONY: format
format:
	@unformatted=$$(gofmt -l .) && if [ -n "$$unformatted" ]; then \
		echo "not formatted; run: gofmt -w ." $$unformatted >&2; exit 1; fi

.PHONY: vet
vet:
	@for module in $(MODULES) $(LANES) $(TIDB); do (cd $$module && go vet ./...) || exit 1; done
	GOARCH=386 CGO_ENABLED=0 go build ./keygen/... ./sharding/... ./schema/... ./gormplugin ./sqlxhook ./observe/...

.PHONY: lint
lint: $(GOLANGCI_LINT) $(ACTIONLINT)
	$(ACTIONLINT)
	@for module in $(MODULES) $(LANES) $(TIDB); do (cd $$module && $(GOLANGCI_LINT) run ./...) || exit 1; done

$(GOLANGCI_LINT):
	.ci/install-tool $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

$(ACTIONLINT):
	.ci/install-tool $@ github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION)

$(APIDIFF):
	.ci/install-tool $@ golang.org/x/exp/cmd/apidiff@$(APIDIFF_VERSION)

.PHONY: $(TESTRUN)
$(TESTRUN):
	@cd integration && CGO_ENABLED=0 go build -o $@ ./testrun

$(GOTESTSUM):
	.ci/install-tool $@ gotest.tools/gotestsum@$(GOTESTSUM_VERSION)
