# Two commands matter: "go run ./cmd/quire serve" runs Quire, "make test" does all set-up and passes every test.
# "make check" is the quick part of the tests: what a commit must satisfy.

GO       ?= go
FUZZTIME ?= 5s

.PHONY: test check unit levels race fuzz arm64 e2e generate build

test: check unit levels race fuzz arm64 e2e
	@echo "all tests passed"

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o quire ./cmd/quire

check:
	@bash .ci/check "$(GO)"

unit:
	$(GO) test ./...

# Which levels of kernels this machine has tested; AMX on an emulator where it has none.
levels:
	@bash .ci/levels "$(GO)"

# The race detector needs a C compiler; without one this says so and goes on. CI installs one.
race:
	@if command -v gcc >/dev/null || command -v clang >/dev/null; then \
		echo "$(GO) test -race -short -tags invariants ./..."; $(GO) test -race -short -tags invariants ./...; \
	else \
		echo "race: SKIPPED, no C compiler found (Debian: apt-get install gcc)"; \
	fi

fuzz:
	@bash .ci/fuzz "$(GO)" $(FUZZTIME)

# Other platforms build, and arm64 gives the same bits; its tests need qemu-user. CI installs it.
arm64:
	@bash .ci/arm64 "$(GO)"

# End to end on the real default model, which quire pull brings, with real clients.
e2e:
	@bash .ci/e2e "$(GO)"

generate:
	$(GO) generate ./...
